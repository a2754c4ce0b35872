#define CENTRED 0
#include "norm_backward.cuh"
