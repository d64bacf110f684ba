# libchoir-net: connections by sockets, in a library beside libchoir and not linked by it
# (docs/decisions/0090). With OpenSSL it has TCP too, without it Unix sockets only.
add_library(choir_net MODULE ${PROJECT_SOURCE_DIR}/net/sockets.c ${PROJECT_SOURCE_DIR}/net/tls.c)
choir_compile_options(choir_net)
choir_link_options(choir_net)
target_compile_definitions(choir_net PRIVATE _GNU_SOURCE)
target_include_directories(choir_net PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(choir_net PRIVATE m)
set_target_properties(choir_net PROPERTIES OUTPUT_NAME choir-net C_VISIBILITY_PRESET hidden
	POSITION_INDEPENDENT_CODE ON)
if(choir_has_OPENSSL)
	target_compile_definitions(choir_net PRIVATE CHOIR_NET_TLS)
	target_include_directories(choir_net SYSTEM PRIVATE ${CHOIR_OPENSSL_INCLUDE})
	target_link_libraries(choir_net PRIVATE ${CHOIR_OPENSSL_LIBRARY} ${CHOIR_OPENSSL_CRYPTO_LIBRARY})
endif()
