#define CENTRED 0
#include "norm.cuh"
