#include "ops/device/cpu/ceilings.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "ops/device/cpu/loops.h"

namespace optrail::ops {
namespace {

// The highest rate of `work`, which returns how much it did.
double BestRate(absl::Duration time, absl::FunctionRef<double()> work) {
  double best = 0;
  const int64_t end =
      absl::GetCurrentTimeNanos() + absl::ToInt64Nanoseconds(time);
  do {
    const int64_t start = absl::GetCurrentTimeNanos();
    const double done = work();
    const int64_t elapsed = absl::GetCurrentTimeNanos() - start;
    best = std::max(
        best, done * 1e9 / static_cast<double>(std::max<int64_t>(elapsed, 1)));
  } while (absl::GetCurrentTimeNanos() < end);
  return best;
}

}  // namespace

absl::StatusOr<proto::Ceilings> MeasureCeilings(Device& device,
                                                const CeilingOptions& options) {
  OPTRAIL_CHECK(device.kind() == proto::CPU);
  const proto::Hardware& hardware = device.hardware();
  const int threads = device.threads();
  // About 0.1 ms at the rates of today's cores.
  constexpr int64_t kTurns = 50000;
  constexpr int64_t kPieceFloats = 64 << 10;

  const int64_t l1_bytes =
      hardware.has_l1d_bytes() ? hardware.l1d_bytes() : 32 << 10;
  const int64_t l2_bytes =
      hardware.has_l2_bytes() ? hardware.l2_bytes() : 512 << 10;
  const int64_t memory_bytes =
      std::max<int64_t>(4 * l2_bytes * threads, 64 << 20);
  const int64_t pieces = memory_bytes / (kPieceFloats * 4);
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<Buffer> from,
      device.Allocate(pieces * kPieceFloats * sizeof(float)));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<Buffer> to,
      device.Allocate(pieces * kPieceFloats * sizeof(float)));
  auto* const source = static_cast<float*>(from->data());
  auto* const target = static_cast<float*>(to->data());
  // Not zero: some machines treat lines of zeros specially.
  std::fill_n(source, pieces * kPieceFloats, 1.0f);

  // A third of a cache leaves room for what else lives there.
  const auto read_rate = [&](int64_t cache_bytes) {
    const int64_t floats =
        std::max<int64_t>(cache_bytes / 3 / 4 / 256 * 256, 256);
    const int64_t turns = std::max<int64_t>(1, (1 << 20) / floats);
    return BestRate(options.time_per_number, [&] {
      for (int64_t turn = 0; turn < turns; ++turn) {
        ReadLoop(source, floats);
      }
      return static_cast<double>(turns * floats) * 4;
    });
  };
  // One reading covers only a sixteenth of the buffers, wandering through them,
  // so that it is short enough to fit between two disturbances; what it reads
  // was pushed out of the caches by the other fifteen.
  const int64_t pieces_per_reading = std::max<int64_t>(pieces / 16, threads);
  int64_t next_piece = 0;
  const auto for_pieces = [&](bool all, absl::FunctionRef<void(int64_t)> body) {
    const int64_t first = next_piece;
    next_piece = (next_piece + pieces_per_reading) % pieces;
    const auto wandering = [&](int64_t i) { body((first + i) % pieces); };
    if (all) {
      device.ParallelFor(pieces_per_reading, wandering);
    } else {
      for (int64_t i = 0; i < pieces_per_reading; ++i) wandering(i);
    }
  };
  const auto flop_rate = [&](int parts) {
    return BestRate(options.time_per_number, [&] {
      double flop = 0;
      device.ParallelFor(parts, [&](int64_t part) {
        const double done = MultiplyAddLoop(kTurns);
        if (part == 0) flop = done * parts;
      });
      return flop;
    });
  };
  const auto memory_read_rate = [&](bool all) {
    return BestRate(options.time_per_number, [&] {
      for_pieces(all, [&](int64_t piece) {
        ReadLoop(source + piece * kPieceFloats, kPieceFloats);
      });
      return static_cast<double>(pieces_per_reading * kPieceFloats) * 4;
    });
  };
  const auto memory_copy_rate = [&](bool all) {
    return BestRate(options.time_per_number, [&] {
      for_pieces(all, [&](int64_t piece) {
        CopyLoop(source + piece * kPieceFloats, kPieceFloats,
                 target + piece * kPieceFloats);
      });
      return static_cast<double>(pieces_per_reading * kPieceFloats) * 8;
    });
  };

  // On a busy machine the reading of all threads may be the lower one, although
  // they can do whatever one of them can.
  proto::Ceilings ceilings;
  const double flop = flop_rate(1);
  ceilings.set_flop_per_s_one_thread(flop);
  ceilings.set_flop_per_s_all_threads(std::max(flop, flop_rate(threads)));
  ceilings.set_l1_read_bytes_per_s(read_rate(l1_bytes));
  ceilings.set_l2_read_bytes_per_s(read_rate(l2_bytes));
  const double read = memory_read_rate(false);
  ceilings.set_memory_read_bytes_per_s_one_thread(read);
  ceilings.set_memory_read_bytes_per_s_all_threads(
      std::max(read, memory_read_rate(true)));
  const double copy = memory_copy_rate(false);
  ceilings.set_memory_copy_bytes_per_s_one_thread(copy);
  ceilings.set_memory_copy_bytes_per_s_all_threads(
      std::max(copy, memory_copy_rate(true)));
  ceilings.set_measured_unix_ns(absl::GetCurrentTimeNanos());
  return ceilings;
}

}  // namespace optrail::ops
