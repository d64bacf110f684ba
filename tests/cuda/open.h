// What tests of libchoir-cuda share.
#pragma once

#include "standin.h"
