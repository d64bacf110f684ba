# What `make install` puts under the prefix. Nothing in it names a path of the machine it was built
# on, so the whole prefix may be moved.
include(CMakePackageConfigHelpers)

install(TARGETS choir_shared choir_static choir_suites EXPORT choirTargets
	LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/choir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
	FILES_MATCHING PATTERN *.h)
foreach(kind IN LISTS choir_mpis)
	install(TARGETS choir_mpi_${kind} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
install(TARGETS choir_net LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET choir_cuda)
	install(PROGRAMS ${choir_cuda_library} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(FILES ${PROJECT_SOURCE_DIR}/mpi/mpi.c DESTINATION ${CMAKE_INSTALL_DATADIR}/choir)
# A module file belongs to one compiler, so the source is installed.
install(FILES ${PROJECT_SOURCE_DIR}/bindings/fortran/choir.f90
	DESTINATION ${CMAKE_INSTALL_DATADIR}/choir/fortran)
if(TARGET choir_command)
	install(TARGETS choir_command DESTINATION ${CMAKE_INSTALL_BINDIR})
	install(FILES ${PROJECT_SOURCE_DIR}/man/choir.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
	if(EXISTS ${PROJECT_SOURCE_DIR}/data)
		install(DIRECTORY ${PROJECT_SOURCE_DIR}/data/ DESTINATION ${CMAKE_INSTALL_DATADIR}/choir)
	endif()
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# CMake: find_package(choir), then link choir::choir (or choir::static), and choir::suites before it.
set(choir_package ${CMAKE_INSTALL_LIBDIR}/cmake/choir)
install(EXPORT choirTargets NAMESPACE choir:: DESTINATION ${choir_package})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/choirConfig.cmake.in
	${PROJECT_BINARY_DIR}/choirConfig.cmake INSTALL_DESTINATION ${choir_package}
	NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/choirConfigVersion.cmake
	COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/choirConfig.cmake ${PROJECT_BINARY_DIR}/choirConfigVersion.cmake
	DESTINATION ${choir_package})

# pkg-config: every folder is found from the one in which the file lies.
set(choir_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH choir_pc_to_prefix ${choir_pc} ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH choir_pc_to_include ${choir_pc} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
file(RELATIVE_PATH choir_pc_to_data ${choir_pc} ${CMAKE_INSTALL_FULL_DATADIR}/choir)
string(REGEX REPLACE "/$" "" choir_pc_to_prefix ${choir_pc_to_prefix})
string(JOIN " " choir_private_libs_line ${choir_private_libs})
foreach(name IN ITEMS choir choir-suites)
	configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
	install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# The documentation for users. What it links to in the source is elsewhere here, or not installed.
function(choir_page source folder)
	file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/docs ${source})
	set(page ${PROJECT_BINARY_DIR}/pages/${name})
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
	file(RELATIVE_PATH include ${CMAKE_INSTALL_FULL_DOCDIR}${folder} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
	file(RELATIVE_PATH data ${CMAKE_INSTALL_FULL_DOCDIR}${folder} ${CMAKE_INSTALL_FULL_DATADIR})
	file(READ ${source} text)
	string(REGEX REPLACE "\\]\\((\\.\\./)+include/choir" "](${include}/choir" text "${text}")
	string(REGEX REPLACE "\\]\\((\\.\\./)+examples/" "](${data}/choir/examples/" text "${text}")
	string(REGEX REPLACE "\\[([^]\n]+)\\]\\((\\.\\./)+(cli/|tests/|README|CONTRIBUTING)[^)]*\\)" "\\1" text "${text}")
	file(CONFIGURE OUTPUT ${page} CONTENT "@text@" @ONLY)
	install(FILES ${page} DESTINATION ${CMAKE_INSTALL_DOCDIR}${folder})
endfunction()

file(GLOB choir_decisions CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/decisions/*.md)
foreach(page IN ITEMS tutorial howto tensorflow pytorch differences cluster rules glossary)
	choir_page(${PROJECT_SOURCE_DIR}/docs/${page}.md "")
endforeach()
file(GLOB choir_pictures CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.png)
install(FILES ${choir_pictures} DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(page IN LISTS choir_decisions)
	choir_page(${page} /decisions)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/choir
	FILES_MATCHING PATTERN *.c PATTERN *.py PATTERN *.f90 PATTERN Makefile)
