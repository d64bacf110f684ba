// What the library says of itself.
#include "choir/library.h"
#include "test.h"

TEST(test_version)
{
	assert_int_equal(choir_version(), CHOIR_VERSION);
}

TEST(test_features)
{
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
