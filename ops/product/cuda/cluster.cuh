#ifndef OPTRAIL_OPS_PRODUCT_CUDA_CLUSTER_CUH_
#define OPTRAIL_OPS_PRODUCT_CUDA_CLUSTER_CUH_

// How blocks of a cluster meet and send each other sums, beside hopper.cuh's
// ClusterSync(), which also orders what they wrote, and takes longer for it.

#include "hopper.cuh"

// All threads of a cluster meet. It orders barriers after BarrierInitDone() and
// values that were read and used, nothing that was written.
__device__ __forceinline__ void ClusterSyncRelaxed() {
  asm volatile(
      "barrier.cluster.arrive.relaxed.aligned;"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

// Writes to the same place in block `rank` of the cluster. The barrier at the
// same place there counts the bytes as those of loads, so that who waits for
// them needs no ClusterSync().
__device__ __forceinline__ void StoreAt(uint32_t to, uint32_t barrier, int rank,
                                        const float (&v)[4]) {
  asm volatile(
      "{.reg .b32 remote, counts; mapa.shared::cluster.u32 remote, %0, %2;"
      "mapa.shared::cluster.u32 counts, %1, %2;"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
      "[remote], {%3, %4, %5, %6}, [counts];}" ::"r"(to),
      "r"(barrier), "r"(rank), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3])
      : "memory");
}

#endif  // OPTRAIL_OPS_PRODUCT_CUDA_CLUSTER_CUH_
