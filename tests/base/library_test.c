// What the library says of itself.
#include "choir/library.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
static void test_version(void **state)
{
	(void) state;
	assert_int_equal(choir_version(), CHOIR_VERSION);
}

static void test_features(void **state)
{
	(void) state;
#ifdef CHI_HAS_ZLIB
	assert_true(choir_has_feature("zlib"));
#else
	assert_false(choir_has_feature("zlib"));
#endif
#ifdef CHI_HAS_HDF5
	assert_true(choir_has_feature("hdf5"));
#else
	assert_false(choir_has_feature("hdf5"));
#endif
#ifdef CHI_HAS_ONEDNN
	assert_true(choir_has_feature("onednn"));
#else
	assert_false(choir_has_feature("onednn"));
#endif
	assert_false(choir_has_feature("teleportation"));
	assert_false(choir_has_feature(""));
	assert_false(choir_has_feature(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_features),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
