// The rows of the table, one class each. Thresholds are shares of the time
// unless the number's name says otherwise.

#include "diagnosis/classes.h"

namespace optrail::diagnosis {
namespace {

constexpr bool kAtLeast = true;
constexpr bool kAtMost = false;

}  // namespace

const std::vector<ClassRule>& ClassTable() {
  static const auto* const table = new std::vector<ClassRule>{
      // The machine, not the kernel.
      {"contention", "", true,
       {{"disturbed_share", kAtLeast, .5}}, "disturbed_share",
       "others had the core during {disturbed_share%} of the samples",
       "measure again on a quiet machine; nothing said here of the kernel is "
       "certain"},
      {"throttling", "", true,
       {{"throttled_share", kAtLeast, .1}}, "throttled_share",
       "power or temperature limits were active in {throttled_share%} of the "
       "samples",
       "raise the limit or cool the device, which is its owner's decision; "
       "less work for the same result takes less power, too"},

      // Time outside the computation.
      {"host", "", false,
       {{"host_share", kAtLeast, .25}}, "host_share",
       "{host_share%} of a call is not the computation", ""},
      {"launch", "host", true,
       {{"fixed_share", kAtLeast, .3}}, "fixed_share",
       "{fixed_share%} of a call does not depend on the size of the problem",
       "move what every call repeats (tables, plans, allocations) out of the "
       "call, fuse with a neighbour, or batch calls"},
      {"page_faults", "host", true,
       {{"system_share", kAtLeast, .15}, {"page_faults", kAtLeast, 4}},
       "system_share",
       "{page_faults} page faults a call: {system_share%} of its time is the "
       "kernel's, for memory that is allocated and returned each time",
       "keep the buffer between calls (a workspace)"},
      {"waiting", "host", true,
       {{"idle_share", kAtLeast, .25}, {"switches", kAtLeast, .5}},
       "idle_share",
       "the calling thread waits for {idle_share%} of the time ({switches} "
       "times a call) instead of computing",
       "read the input ahead, or wait without the lock"},
      {"system_calls", "host", true,
       {{"system_share", kAtLeast, .2}, {"page_faults", kAtMost, 4}},
       "system_share",
       "{system_share%} of a call is spent in the operating system",
       "take the system calls out of the call"},

      // Several threads.
      {"parallel", "", false,
       {{"parallel_loss", kAtLeast, .2}}, "parallel_loss",
       "{threads} threads are {thread_speedup} times as fast as one", ""},
      {"imbalance", "parallel", true,
       {{"imbalance_share", kAtLeast, .15}}, "imbalance_share",
       "the slowest thread works {imbalance_share%} of the time longer than "
       "the mean",
       "cut the work into more pieces of equal size"},
      {"serial_part", "parallel", true,
       {{"serial_share", kAtLeast, .25}}, "serial_gain",
       "{serial_share%} of a call runs on one thread",
       "share out that part, too"},
      {"synchronisation", "parallel", true,
       {{"loop_cost_share", kAtLeast, .15}}, "loop_cost_share",
       "{parallel_loops} parallel loops a call take {loop_cost_share%} of it "
       "to begin and to end",
       "share out fewer, longer loops"},
      {"contended_lines", "parallel", true,
       {{"work_inflation", kAtLeast, 1.4},
        {"loop_locked", kAtLeast, 1},
        {"memory_gain", kAtMost, .5}},
       "inflation_gain",
       "threads take {work_inflation} times the processor time of one thread, "
       "and the loop has {loop_locked} locked instructions",
       "let each thread add up its own result and combine them once"},
      {"false_sharing", "parallel", true,
       {{"work_inflation", kAtLeast, 1.4},
        {"loop_locked", kAtMost, 0},
        {"streaming_share", kAtMost, .5}},
       "inflation_gain",
       "threads take {work_inflation} times the processor time of one thread, "
       "without locked instructions and far from the bandwidth of memory",
       "keep what different threads write a cache line apart"},

      // Memory.
      {"memory", "", false,
       {{"memory_gain", kAtLeast, .2}}, "memory_gain",
       "{memory_gain%} of the time goes when operands need not travel", ""},
      {"l2", "memory", false, {{"level_l2", kAtLeast, 1}}, "memory_gain",
       "{working_set_kib} KiB live in the L2", ""},
      {"l3", "memory", false, {{"level_l3", kAtLeast, 1}}, "memory_gain",
       "{working_set_kib} KiB live in the L3", ""},
      {"dram", "memory", false, {{"level_dram", kAtLeast, 1}}, "memory_gain",
       "{working_set_kib} KiB come from memory", ""},
      {"extra_passes", "memory", true,
       {{"passes", kAtLeast, 1.6}, {"page_jumps", kAtMost, 8}},
       "pass_gain",
       "operands are traversed {passes} times where once would do",
       "fuse the passes, or block the loop so that a block stays in cache"},
      {"strided", "memory", true,
       {{"page_jumps", kAtLeast, 8}, {"regular_share", kAtLeast, .5}},
       "memory_gain",
       "each page of an operand is visited {page_jumps} times, at a constant "
       "stride: the loop runs across the layout",
       "exchange the loops, or block or transpose the operand"},
      {"gather", "memory", true,
       {{"page_jumps", kAtLeast, 8}, {"regular_share", kAtMost, .5}},
       "memory_gain",
       "each page of an operand is visited {page_jumps} times, in no regular "
       "order: the kernel waits for one access after another",
       "sort the accesses, prefetch, or work on several at a time"},
      {"copies", "memory", true,
       {{"workspace_share", kAtLeast, .25}}, "workspace_gain",
       "{workspace_share%} of the pages visited are those of a workspace",
       "compute from the operands as they are stored, or convert them block by "
       "block in cache"},
      {"tlb", "memory", true,
       {{"huge_page_gain", kAtLeast, .12}}, "huge_page_gain",
       "{huge_page_gain%} of the time goes on huge pages",
       "allocate operands on huge pages (madvise)"},

      // Computation.
      {"compute", "", false,
       {{"memory_gain", kAtMost, .35}}, "compute_room",
       "{compute_left%} of the time stays when operands need not travel", ""},
      {"scalar", "compute", true,
       {{"vector_use", kAtMost, .15}, {"scalar_share", kAtLeast, .6}},
       "scalar_gain",
       "the loop computes one value at a time: {scalar_share%} of its "
       "arithmetic is scalar, and without vectorisation it is no slower",
       "let the compiler vectorise it (no aliasing, no calls, sums in any "
       "order), or write vectors"},
      {"narrow_vectors", "compute", true,
       {{"vector_width_share", kAtMost, .6}, {"scalar_share", kAtMost, .4}},
       "narrow_gain",
       "vectors are {vector_width_share%} as wide as this processor's",
       "compile for this processor (-march, -mprefer-vector-width)"},
      {"latency", "compute", true,
       {{"reassociation_gain", kAtLeast, .15}}, "reassociation_gain",
       "each step waits for the one before: {reassociation_gain%} of the time "
       "goes when sums may be computed in any order",
       "add up in several accumulators"},
      {"spills", "compute", true,
       {{"stack_share", kAtLeast, .3}}, "spill_gain",
       "{stack_share%} of the main loop's instructions touch the stack: "
       "values do not fit into registers",
       "unroll less, or block smaller"},
      {"conversions", "compute", true,
       {{"conversion_share", kAtLeast, .12}}, "conversion_gain",
       "{conversion_share%} of the main loop's instructions convert numbers",
       "compute in the type of the operands"},
      {"slow_instructions", "compute", true,
       {{"slow_share", kAtLeast, .03}}, "slow_gain",
       "divisions, roots or calls are {slow_share%} of the main loop's "
       "instructions, which take ten times the others' time",
       "multiply by a reciprocal, or use a vectorised approximation"},
      {"denormals", "compute", true,
       {{"denormal_gain", kAtLeast, .12}}, "denormal_gain",
       "{denormal_gain%} of the time goes when denormals are taken for zero",
       "scale the values, or switch denormals off (FTZ, DAZ)"},
      {"branches", "compute", true,
       {{"data_gain", kAtLeast, .2}, {"denormal_gain", kAtMost, .1}},
       "data_gain",
       "{data_gain%} of the time goes with inputs that are all equal: branches "
       "depend on the data and are mispredicted",
       "select with masks instead of branches"},
      {"misaligned", "compute", true,
       {{"alignment_gain", kAtLeast, .1}}, "alignment_gain",
       "{alignment_gain%} of the time goes when operands are moved by "
       "{best_offset_bytes} bytes: vectors cross cache lines",
       "align rows and the first element that vectors read"},

      // What the device's compiler and driver tell.
      {"device_spills", "", true,
       {{"spill_bytes", kAtLeast, 1}}, "register_gain",
       "{spill_bytes} bytes of registers are spilled a thread",
       "smaller tiles, or fewer threads a block"},
      {"barriers", "", true,
       {{"barrier_gain", kAtLeast, .12}}, "barrier_gain",
       "{barrier_gain%} of the time goes without barriers",
       "more stages in flight, or more blocks a multiprocessor"},
      {"device_launch", "", true,
       {{"graph_gain", kAtLeast, .15}}, "graph_gain",
       "{graph_gain%} of the time goes when a captured graph launches",
       "launch captured graphs, or fuse kernels"},
  };
  return *table;
}

}  // namespace optrail::diagnosis
