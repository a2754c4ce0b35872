// y = 2 * x on CUDA, misbehaving on request.
//
// Compiled at run time with these macros: BEHAVIOUR, a number of the list in
// faulty_cuda.cc; WORK, how often the result is computed.

extern "C" __global__ void faulty(float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
#if BEHAVIOUR == 1  // illegal_address
  if (i == 0) *(volatile float*)0x10 = 1;
#elif BEHAVIOUR == 2  // misaligned_address
  if (i == 0) *(volatile float*)((char*)y + 1) = 1;
#elif BEHAVIOUR == 3  // trap
  if (i == 0) asm volatile("trap;");
#elif BEHAVIOUR == 4  // hang
  while (true) __nanosleep(1000);
#elif BEHAVIOUR == 5  // write_nothing
  return;
#endif
  if (i >= n) return;
  for (int turn = 0; turn < WORK; ++turn) {
    ((volatile float*)y)[i] = 2 * ((volatile float*)x)[i];
  }
#if BEHAVIOUR == 6  // write_nan
  if (i == n / 2) y[i] = __int_as_float(0x7fffffff);
#elif BEHAVIOUR == 7  // write_out_of_bounds
  if (i == 0) y[n] = 1;
#elif BEHAVIOUR == 8  // change_input
  if (i == n - 1) x[i] = 7;
#endif
}
