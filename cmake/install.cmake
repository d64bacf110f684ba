# What `make install` puts under the prefix. Nothing in it names a path of the machine it was built
# on, so the whole prefix may be moved.
include(CMakePackageConfigHelpers)

install(TARGETS choir_shared choir_static EXPORT choirTargets
	LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/choir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
	FILES_MATCHING PATTERN *.h)
foreach(kind IN LISTS choir_mpis)
	install(TARGETS choir_mpi_${kind} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/mpi/mpi.c DESTINATION ${CMAKE_INSTALL_DATADIR}/choir)
if(TARGET choir_command)
	install(TARGETS choir_command DESTINATION ${CMAKE_INSTALL_BINDIR})
	install(FILES ${PROJECT_SOURCE_DIR}/man/choir.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
	if(EXISTS ${PROJECT_SOURCE_DIR}/data)
		install(DIRECTORY ${PROJECT_SOURCE_DIR}/data/ DESTINATION ${CMAKE_INSTALL_DATADIR}/choir)
	endif()
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# CMake: find_package(choir), then link choir::choir (or choir::static).
set(choir_package ${CMAKE_INSTALL_LIBDIR}/cmake/choir)
install(EXPORT choirTargets NAMESPACE choir:: DESTINATION ${choir_package})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/choirConfig.cmake.in
	${PROJECT_BINARY_DIR}/choirConfig.cmake INSTALL_DESTINATION ${choir_package}
	NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/choirConfigVersion.cmake
	COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/choirConfig.cmake ${PROJECT_BINARY_DIR}/choirConfigVersion.cmake
	DESTINATION ${choir_package})

# pkg-config: the prefix is where the file lies.
file(RELATIVE_PATH choir_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" choir_up ${choir_up})
string(JOIN " " choir_private_libs_line ${choir_private_libs})
configure_file(${PROJECT_SOURCE_DIR}/cmake/choir.pc.in ${PROJECT_BINARY_DIR}/choir.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/choir.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
