// A convolution of images, channels last: convolution.h has the formula.

#include "ops/conv2d/convolution_halide.h"

OPTRAIL_HALIDE_ALGORITHM(call) { return optrail::ops::Convolution(call); }
