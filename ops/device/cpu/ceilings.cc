#include "ops/device/cpu/ceilings.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "ops/device/cpu/loops.h"

namespace optrail::ops {
namespace {

// The highest rate of `work`, which returns how much it did.
double BestRate(absl::Duration time, absl::FunctionRef<double()> work) {
  double best = 0;
  const int64_t end = Clock::Real()->NowNs() + absl::ToInt64Nanoseconds(time);
  do {
    const int64_t start = Clock::Real()->NowNs();
    const double done = work();
    const int64_t elapsed = Clock::Real()->NowNs() - start;
    best = std::max(
        best, done * 1e9 / static_cast<double>(std::max<int64_t>(elapsed, 1)));
  } while (Clock::Real()->NowNs() < end);
  return best;
}

// Streaming stores go here.
constexpr int64_t kTargetBytes = int64_t{64} << 20;

// An L3 that keeps what an L2 drops (Zen's) keeps part of a stream three times
// its size, too: of 96 MiB beside 32 such a core read 67 GB/s, of 256 MiB and
// more 43.
constexpr int64_t kLeastBytesToRead = int64_t{256} << 20;

int64_t MemoryBytesToRead(const proto::Hardware& hardware, int threads) {
  const int64_t wanted =
      std::max({4 * hardware.l2_bytes() * threads,
                kL3Multiple * hardware.l3_bytes(), kLeastBytesToRead});
  // Not so much that the rest of the machine has to move.
  const int64_t bound = hardware.has_memory_bytes()
                            ? hardware.memory_bytes() / 8
                            : kLeastBytesToRead;
  return std::min(wanted, std::max(bound, int64_t{64} << 20));
}

}  // namespace

absl::StatusOr<proto::Ceilings> MeasureCeilings(CpuDevice& device,
                                                const CeilingOptions& options) {
  const proto::Hardware& hardware = device.hardware();
  const int threads = device.threads();
  // About 0.1 ms at the rates of today's cores.
  constexpr int64_t kTurns = 50000;
  constexpr int64_t kPieceFloats = 64 << 10;

  const int64_t l1_bytes =
      hardware.has_l1d_bytes() ? hardware.l1d_bytes() : 32 << 10;
  const int64_t l2_bytes =
      hardware.has_l2_bytes() ? hardware.l2_bytes() : 512 << 10;
  const int64_t memory_bytes = MemoryBytesToRead(hardware, threads);
  const int64_t pieces = memory_bytes / (kPieceFloats * 4);
  // Streaming stores go past the caches: their buffer may be smaller.
  const int64_t target_pieces =
      std::min(pieces, kTargetBytes / (kPieceFloats * 4));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<Buffer> from,
      device.Allocate(pieces * kPieceFloats * sizeof(float)));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<Buffer> to,
      device.Allocate(target_pieces * kPieceFloats * sizeof(float)));
  auto* const source = static_cast<float*>(from->data());
  auto* const target = static_cast<float*>(to->data());
  // Not zero: some machines treat lines of zeros specially.
  std::fill_n(source, pieces * kPieceFloats, 1.0f);

  const auto read_rate = [&](int64_t bytes) {
    const int64_t floats = std::max<int64_t>(bytes / 4 / 256 * 256, 256);
    const int64_t turns = std::max<int64_t>(1, (1 << 20) / floats);
    return BestRate(options.time_per_number, [&] {
      for (int64_t turn = 0; turn < turns; ++turn) {
        ReadLoop(source, floats);
      }
      return static_cast<double>(turns * floats) * 4;
    });
  };
  // One reading covers only a part of the buffer, wandering through it, so that
  // it is short enough to fit between two disturbances; what it reads was
  // pushed out of the caches by all the rest.
  const int64_t pieces_per_reading =
      std::max<int64_t>(std::min<int64_t>(pieces / 16, 32), threads);
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
                 target + piece % target_pieces * kPieceFloats);
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
  // A third of a cache leaves room for other data. A buffer for the L3 must not
  // fit into the L2.
  ceilings.set_l1_read_bytes_per_s(read_rate(l1_bytes / 3));
  ceilings.set_l2_read_bytes_per_s(read_rate(l2_bytes / 3));
  const int64_t l3_floor_bytes = 2 * l2_bytes;
  if (hardware.l3_bytes() / 3 >= l3_floor_bytes) {
    ceilings.set_l3_read_bytes_per_s(
        read_rate(std::min(hardware.l3_bytes() / 3, 2 * l3_floor_bytes)));
  }
  ceilings.set_memory_buffer_bytes(memory_bytes);
  const double read = memory_read_rate(false);
  ceilings.set_memory_read_bytes_per_s_one_thread(read);
  ceilings.set_memory_read_bytes_per_s_all_threads(
      std::max(read, memory_read_rate(true)));
  const double copy = memory_copy_rate(false);
  ceilings.set_memory_copy_bytes_per_s_one_thread(copy);
  ceilings.set_memory_copy_bytes_per_s_all_threads(
      std::max(copy, memory_copy_rate(true)));
  ceilings.set_measured_unix_ns(Clock::Real()->WallNs());
  return ceilings;
}

}  // namespace optrail::ops
