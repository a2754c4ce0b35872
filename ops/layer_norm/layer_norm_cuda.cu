#define CENTRED 1
#include "norm.cuh"
