#include "ops/lib/cuda_frame.h"

OPTRAIL_ELEMENTWISE_CUDA("relu", "relu_cuda.cu")
