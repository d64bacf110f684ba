# What ctest runs in a build without tests: one short training, and it says where the tests are.
if(TARGET choir_command)
	add_test(NAME choir/trains COMMAND choir_command train --model mlp --data digits:2000 --epochs 1)
endif()
add_test(NAME choir/tests COMMAND ${CMAKE_COMMAND} -E echo
	"skipped: this build is without tests; configure it with -DCHOIR_TESTS=ON")
set_tests_properties(choir/tests PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
