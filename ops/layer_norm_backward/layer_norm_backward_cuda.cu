#define CENTRED 1
#include "norm_backward.cuh"
