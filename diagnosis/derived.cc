#include "diagnosis/derived.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "diagnosis/derived_pages.h"

namespace optrail::diagnosis {
namespace {

// Inputs of zeros travel as far as others do. So what is left with them bounds
// the time that goes to memory: a block that is mapped again and again also
// repeats its values, which branch predictors learn.
void BoundMemoryByData(Numbers* numbers) {
  const Number* const memory = numbers->Find("memory_gain");
  const double left = 1 - numbers->ValueOr("data_gain", 0);
  if (memory == nullptr || memory->value <= left || left <= 0) return;
  numbers->Set(
      "memory_gain",
      {left, std::min(memory->low, left), std::min(memory->high, left)},
      "the time that stays with inputs of zeros");
}

// How a launch fills a GPU: by its grid, and by what a multiprocessor holds.
void AddGrid(const proto::Hardware& hardware, Numbers* numbers) {
  const Number* const empty = numbers->Find("empty_launch_ns");
  const double graph_ns =
      numbers->ValueOr("graph_ns", numbers->ValueOr("time_ns", 0));
  if (empty != nullptr && graph_ns > 0) {
    const double kernels = std::max(numbers->ValueOr("kernels", 1), 1.);
    numbers->Set("launch_share",
                 std::min(1., kernels * empty->value / graph_ns),
                 "kernels that do nothing, as many");
  }
  const double blocks = numbers->ValueOr("grid_blocks", 0);
  const double resident = numbers->ValueOr("resident_blocks", 0);
  const double cores = hardware.cores();
  if (blocks <= 0 || cores <= 0) return;
  numbers->Set("grid_share", std::min(1., blocks / cores),
               "blocks over multiprocessors");
  numbers->Set("idle_multiprocessors", std::max(0., 1 - blocks / cores),
               kEstimated);
  if (resident <= 0) return;
  const double waves = blocks / (resident * cores);
  numbers->Set("waves", waves, "of blocks that are resident together");
  numbers->Set("tail_share", waves > 1 ? 1 - waves / std::ceil(waves) : 0,
               "of the waves that the last one leaves empty");
  const double warps = numbers->ValueOr("multiprocessor_warps", 0);
  if (warps <= 0) return;
  numbers->Set(
      "warps_share",
      std::min(1., std::min(resident, std::ceil(blocks / cores)) *
                       std::ceil(numbers->ValueOr("block_threads", 0) / 32) /
                       warps),
      "of the warps that a multiprocessor can have");
}

// Adds the cost of accesses: a narrow one is an instruction as a wide one is.
void AddAccesses(Numbers* numbers) {
  const double accesses = numbers->ValueOr("global_accesses", 0);
  if (accesses > 0) {
    const double narrow = numbers->ValueOr("narrow_accesses", 0) / accesses;
    numbers->Set("narrow_share", narrow,
                 "accesses of global memory of less than 4 bytes");
    // Bytes could have been words.
    numbers->Set("width_gain",
                 .75 * narrow * numbers->ValueOr("compute_left", 1),
                 kEstimated);
  }
  if (const Number* const streaming = numbers->Find("streaming_share")) {
    numbers->Set("traffic_gain", std::clamp(1 - streaming->value, 0., 1.),
                 kEstimated);
  }
}

void AddHost(Numbers* numbers, int threads) {
  const Number* const processor = numbers->Find("processor_share");
  // The system's share is one of the time on a core.
  const double system =
      numbers->ValueOr("system_share", 0) *
      (processor != nullptr && threads <= 1 ? std::min(processor->value, 1.)
                                            : 1);
  numbers->Set("system_time_share", system, "of the wall time");
  if (processor != nullptr && threads <= 1) {
    numbers->Set("idle_share", std::clamp(1 - processor->value, 0., 1.),
                 "wall time without a core");
  }
  // A thread that waits for a core that others have is not idle: it did not
  // give its own back.
  const bool gives_core_back = numbers->ValueOr("switches", 0) >= .5;
  const double idle = gives_core_back ? numbers->ValueOr("idle_share", 0) : 0;
  const double fixed = numbers->ValueOr("fixed_share", 0);
  // Waiting and system calls are causes of their own.
  numbers->Set("fixed_work_share", std::max(0., fixed - idle - system),
               "fixed, neither idle nor in the system");
  numbers->Set("host_share", std::max({fixed, system, idle}),
               "largest of fixed, system and idle shares");
}

// Threads that lost their core look like threads with more work. Returns ""
// where that did not happen.
std::string WhyThreadsUnknown(const Numbers& numbers) {
  return LoopsTakeLonger(numbers)
             ? "others had the cores while loops were observed"
             : "";
}

void AddThreads(Numbers* numbers, int threads) {
  const Number* const loops = numbers->Find("parallel_ns");
  const double call_ns = numbers->ValueOr("call_ns", 0);
  if (loops == nullptr || threads <= 1 || call_ns <= 0) return;
  numbers->Set("loop_cost_share",
               std::clamp(numbers->ValueOr("parallel_loops", 0) *
                              numbers->ValueOr("empty_loop_ns", 0) / call_ns,
                          0., 1.),
               "empty loops, as many");
  if (const std::string why = WhyThreadsUnknown(*numbers); !why.empty()) {
    for (const char* name :
         {"imbalance_share", "serial_share", "work_inflation"}) {
      numbers->SetUnsupported(name, why);
    }
    return;
  }
  const double slowest = numbers->ValueOr("slowest_thread_ns", 0);
  const double mean = numbers->ValueOr("mean_thread_ns", 0);
  const double observed = std::max(call_ns, loops->value);
  numbers->Set("imbalance_share", std::max(0., slowest - mean) / observed,
               "loop bodies of the slowest thread against the mean");
  const double serial = std::clamp(1 - loops->value / observed, 0., 1.);
  numbers->Set("serial_share", serial, "outside parallel loops");
  numbers->Set("serial_gain", serial * (1 - 1. / threads), kEstimated);
  const double one_ns = numbers->ValueOr("one_thread_ns", 0);
  if (one_ns > 0) {
    // Code that runs on one thread in any case is left out.
    const double inflation = mean * threads / one_ns;
    numbers->Set("work_inflation", inflation,
                 "time in loop bodies of all threads against one thread's");
    numbers->Set("inflation_gain",
                 std::max(0., 1 - 1 / std::max(inflation, 1.)), kEstimated);
  }
}

// Threads share what is locked, be it in the loop or in what it calls.
void AddShared(Numbers* numbers) {
  if (numbers->Find("loop_locked") == nullptr) return;
  numbers->Set(
      "shared_operations",
      numbers->ValueOr("loop_locked", 0) + numbers->ValueOr("loop_calls", 0),
      "locked instructions and calls of the loop");
}

// The part of the time that computes: without waiting for memory or for the
// step before, and without what threads lose to each other in the same loop.
double ComputingShare(const Numbers& numbers) {
  // Without the loop that giving up the order makes, less arithmetic is not
  // told from less waiting.
  const Number* const order = numbers.Find("order_gain");
  const bool waits_known =
      order != nullptr && numbers.Find("reassociated_memory_bytes") != nullptr;
  const double waits = waits_known ? std::clamp(order->low, 0., 1.) : 0;
  const double computing = numbers.ValueOr("compute_left", 1) * (1 - waits) /
                           std::max(1., numbers.ValueOr("work_inflation", 1));
  // No thread computes more than one that does all of the work.
  const double one_ns = numbers.ValueOr("one_thread_ns", 0);
  const double time_ns = numbers.ValueOr("time_ns", 0);
  return one_ns > 0 && time_ns > 0 ? std::min(computing, one_ns / time_ns)
                                   : computing;
}

// The order of sums keeps code scalar where giving it up brings much, and the
// code that comes of it uses vectors: by its main loop, or by what it loses
// without them.
double ScalarInAnyOrder(const Numbers& numbers) {
  constexpr double kOrderMatters = .3;
  if (numbers.ValueOr("reassociation_gain", 0) < kOrderMatters) {
    return numbers.ValueOr("scalar_share", 0);
  }
  if (numbers.ValueOr("reassociated_vector_use", 0) >= kOrderMatters) return 0;
  return numbers.ValueOr("reassociated_scalar_share", 0);
}

// The arithmetic that giving up the order leaves: of an iteration or for each
// byte that the main loop loads and stores, whichever is more, since loops are
// unrolled and loads repeated. 1 where the two loops cannot be compared.
double ArithmeticLeft(const Numbers& numbers) {
  const double vector = numbers.ValueOr("loop_vector_fp", 0);
  const double scalar = numbers.ValueOr("loop_scalar_fp", 0);
  const double bytes = numbers.ValueOr("loop_memory_bytes", 0);
  const double new_vector = numbers.ValueOr("reassociated_vector_fp", 0);
  const double new_scalar = numbers.ValueOr("reassociated_scalar_fp", 0);
  const double new_bytes = numbers.ValueOr("reassociated_memory_bytes", 0);
  const double before = vector + scalar, after = new_vector + new_scalar;
  if (before <= 0 || bytes <= 0 || after <= 0 || new_bytes <= 0) return 1;
  // Scalar code that becomes vectors has as much arithmetic as before.
  constexpr double kSameShare = .1;
  if (std::abs(scalar / before - new_scalar / after) > kSameShare) return 1;
  const double left = after / before;
  return std::min(1., std::max(left, left * bytes / new_bytes));
}

// Gives up the order of sums for two reasons: chains become shorter, and
// products are left out. What goes in proportion to the arithmetic is no
// latency.
void AddOrder(Numbers* numbers) {
  const Number* const gain = numbers->Find("reassociation_gain");
  if (gain == nullptr) return;
  const double left = ArithmeticLeft(*numbers);
  const auto beyond = [&](double value) {
    return std::max(0., 1 - (1 - value) / left);
  };
  numbers->Set("order_gain",
               {beyond(gain->value), beyond(gain->low), beyond(gain->high)},
               left < 1 ? "reassociation_gain, beyond the arithmetic left out"
                        : "reassociation_gain");
  numbers->Set("arithmetic_left", left,
               "arithmetic for each byte with sums in any order");
  const double spared = std::min(gain->value, 1 - left);
  numbers->Set("spared_gain", {spared, std::min(gain->low, spared), spared},
               kEstimated);
}

void AddLoop(const proto::Hardware& hardware, Numbers* numbers) {
  const double instructions = numbers->ValueOr("loop_instructions", 0);
  if (instructions <= 0) return;
  const double vector = numbers->ValueOr("loop_vector_fp", 0);
  const double scalar = numbers->ValueOr("loop_scalar_fp", 0);
  const auto share = [&](absl::string_view name, absl::string_view count) {
    const double value = numbers->ValueOr(count, 0) / instructions;
    numbers->Set(name, value, "instructions of the main loop");
    return value;
  };
  if (vector + scalar > 0) {
    const double scalar_share = scalar / (vector + scalar);
    numbers->Set("scalar_share", scalar_share, "arithmetic of the main loop");
    if (numbers->Find("reassociated_scalar_share") == nullptr) {
      numbers->Set("reassociated_scalar_share", scalar_share,
                   "arithmetic of the main loop");
    }
    numbers->Set("scalar_in_any_order", ScalarInAnyOrder(*numbers),
                 "arithmetic of the main loop, not for the order of sums");
  }
  const double lanes = std::max(hardware.simd_bits() / 32., 1.);
  const double computing = ComputingShare(*numbers);
  // Memory and everything else bound what vectors bring.
  numbers->Set("scalar_gain", (1 - 1 / lanes) * computing, kEstimated);
  if (vector > 0 && hardware.simd_bits() > 0) {
    const double width =
        numbers->ValueOr("loop_vector_bits", 0) / hardware.simd_bits();
    numbers->Set("vector_width_share", width, "instructions of the main loop");
    numbers->Set("narrow_gain", (1 - width) * computing, kEstimated);
  }
  const double stack = share("stack_share", "loop_stack_accesses");
  numbers->Set("spill_gain", stack * computing, kEstimated);
  const double conversions = share("conversion_share", "loop_conversions");
  numbers->Set("conversion_gain", std::min(1., 2 * conversions) * computing,
               kEstimated);
  const double slow =
      (numbers->ValueOr("loop_slow", 0) + numbers->ValueOr("loop_calls", 0)) /
      instructions;
  numbers->Set("slow_share", slow, "instructions of the main loop");
  // A division takes about ten times as long as another instruction.
  numbers->Set("slow_gain", 10 * slow / (1 + 9 * slow), kEstimated);
}

}  // namespace

bool LoopsTakeLonger(const Numbers& numbers) {
  const double loops_ns = numbers.ValueOr("parallel_ns", 0);
  // Clocks around every iteration take time as well.
  constexpr double kClocksOfLoopNs = 500;
  const double clocks_ns =
      numbers.ValueOr("parallel_loops", 0) * kClocksOfLoopNs;
  constexpr double kLonger = 1.2;
  const double call_ns =
      std::max(numbers.ValueOr("call_ns", 0), numbers.ValueOr("time_ns", 0));
  return loops_ns > kLonger * call_ns + clocks_ns;
}

void AddDerived(const proto::Hardware& hardware, int threads,
                Numbers* numbers) {
  BoundMemoryByData(numbers);
  if (const Number* const memory = numbers->Find("memory_gain")) {
    // Zeros also travel faster than other values on some machines.
    if (const Number* const data = numbers->Find("data_gain")) {
      // A call that moves its operands at half of their level's bandwidth or
      // more spends that part of its time on traffic.
      constexpr double kStreams = .5;
      const double streaming = numbers->ValueOr("streaming_share", 0);
      const double traffic =
          std::max({0., memory->value, streaming >= kStreams ? streaming : 0});
      numbers->Set("data_beyond_memory", data->value - traffic,
                   "data_gain, less what goes with the traffic");
    }
    numbers->Set("compute_left", std::clamp(1 - memory->value, 0., 1.),
                 "time with operands in one small block");
    // Arithmetic that hides behind traffic shows once the traffic is gone: a
    // GPU that reaches 60% of its memory's ceiling waits for memory.
    Number share = *memory;
    if (const Number* const streams = numbers->Find("from_memory_share")) {
      share = {std::max(share.value, streams->value),
               std::max(share.low, streams->low),
               std::max(share.high, streams->high)};
    }
    numbers->Set("memory_share", share,
                 "memory_gain, or the share of the ceiling of memory");
  }
  numbers->Set("compute_room",
               std::clamp(1 - numbers->ValueOr("arithmetic_share", 0), 0., 1.),
               kEstimated);
  if (const Number* const spilled = numbers->Find("spill_bytes");
      spilled != nullptr && numbers->Find("register_gain") == nullptr) {
    numbers->Set("register_gain", std::min(.5, spilled->value / 1024),
                 kEstimated);
  }
  if (hardware.device_kind() == proto::CUDA) {
    AddGrid(hardware, numbers);
    AddAccesses(numbers);
    numbers->Set("memory_evidence", numbers->ValueOr("memory_share", 0),
                 "memory_share");
    return;
  }
  numbers->Set("memory_evidence", numbers->ValueOr("memory_gain", 0),
               "memory_gain");
  AddPages(numbers);
  AddShared(numbers);
  AddHost(numbers, threads);
  AddThreads(numbers, threads);
  AddOrder(numbers);
  AddLoop(hardware, numbers);
}

}  // namespace optrail::diagnosis
