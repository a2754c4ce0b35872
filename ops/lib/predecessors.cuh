#ifndef OPTRAIL_OPS_LIB_PREDECESSORS_CUH_
#define OPTRAIL_OPS_LIB_PREDECESSORS_CUH_

// Every kernel of ours calls this before it reads or writes memory, so that its
// launch may overlap the end of the kernel before it in the stream
// (programmatic dependent launch, CUDA's programming guide). Where the launch
// does not ask for that, it costs nothing. Dependents start as blocks end:
// griddepcontrol.launch_dependents, which lets them start earlier, doubles the
// time of kernels with many small blocks.
__device__ __forceinline__ void AwaitPredecessors() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif  // OPTRAIL_OPS_LIB_PREDECESSORS_CUH_
