#include "ops/device/cpu/ceilings.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "ops/device/cpu/cache_sizes.h"
#include "ops/device/cpu/loops.h"
#include "tuning/proto/roofline.h"

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

constexpr int64_t kPieceFloats = 64 << 10;

// The rates of one device. Of memory one reading covers only a part of the
// buffer, wandering through it, so that it is short enough to fit between two
// disturbances; what it reads was pushed out of the caches by all the rest.
class Rates {
 public:
  Rates(CpuDevice& device, absl::Duration time_per_number, int64_t memory_bytes)
      : device_(device),
        time_(time_per_number),
        pieces_(memory_bytes / (kPieceFloats * 4)),
        target_pieces_(std::min(pieces_, kTargetBytes / (kPieceFloats * 4))),
        pieces_per_reading_(std::max<int64_t>(
            std::min<int64_t>(pieces_ / 16, 32), device.threads())) {}

  absl::Status Allocate() {
    OPTRAIL_ASSIGN_OR_RETURN(
        from_, device_.Allocate(pieces_ * kPieceFloats * sizeof(float)));
    // Streaming stores go past the caches: their buffer may be smaller.
    OPTRAIL_ASSIGN_OR_RETURN(
        to_, device_.Allocate(target_pieces_ * kPieceFloats * sizeof(float)));
    // Not zero: some machines treat lines of zeros specially.
    std::fill_n(source(), pieces_ * kPieceFloats, 1.0f);
    return absl::OkStatus();
  }

  // Operations a second, of `parts` threads.
  double Flop(int parts) {
    // About 0.1 ms at the rates of today's cores.
    constexpr int64_t kTurns = 50000;
    return BestRate(time_, [&] {
      double flop = 0;
      device_.ParallelFor(parts, [&](int64_t part) {
        const double done = MultiplyAddLoop(kTurns);
        if (part == 0) flop = done * parts;
      });
      return flop;
    });
  }

  // Bytes a second, of a buffer that a cache holds.
  double Read(int64_t bytes) { return Read(bytes, time_); }
  double Read(int64_t bytes, absl::Duration time) {
    const int64_t floats = std::max<int64_t>(bytes / 4 / 256 * 256, 256);
    const int64_t turns = std::max<int64_t>(1, (1 << 20) / floats);
    return BestRate(time, [&] {
      for (int64_t turn = 0; turn < turns; ++turn) ReadLoop(source(), floats);
      return static_cast<double>(turns * floats) * 4;
    });
  }

  CacheSizes SeenSizes(double memory_bytes_per_s) {
    std::vector<SizedRate> rates;
    for (const int64_t bytes : SizesToRead()) {
      if (bytes > pieces_ * kPieceFloats * 4) break;
      // There are twenty sizes, and a cache's is seen in several of them.
      rates.push_back({bytes, Read(bytes, time_ / 8)});
    }
    return FindCacheSizes(rates, memory_bytes_per_s);
  }

  // The same of memory, by one thread or by all of them.
  double MemoryRead(bool all) {
    return BestRate(time_, [&] {
      ForPieces(all, [&](int64_t piece) {
        ReadLoop(source() + piece * kPieceFloats, kPieceFloats);
      });
      return static_cast<double>(pieces_per_reading_ * kPieceFloats) * 4;
    });
  }
  double MemoryCopy(bool all) {
    auto* const target = static_cast<float*>(to_->data());
    return BestRate(time_, [&] {
      ForPieces(all, [&](int64_t piece) {
        CopyLoop(source() + piece * kPieceFloats, kPieceFloats,
                 target + piece % target_pieces_ * kPieceFloats);
      });
      return static_cast<double>(pieces_per_reading_ * kPieceFloats) * 8;
    });
  }

 private:
  float* source() const { return static_cast<float*>(from_->data()); }

  void ForPieces(bool all, absl::FunctionRef<void(int64_t)> body) {
    const int64_t first = next_piece_;
    next_piece_ = (next_piece_ + pieces_per_reading_) % pieces_;
    const auto wandering = [&](int64_t i) { body((first + i) % pieces_); };
    if (all) {
      device_.ParallelFor(pieces_per_reading_, wandering);
    } else {
      for (int64_t i = 0; i < pieces_per_reading_; ++i) wandering(i);
    }
  }

  CpuDevice& device_;
  const absl::Duration time_;
  const int64_t pieces_, target_pieces_, pieces_per_reading_;
  std::unique_ptr<Buffer> from_, to_;
  int64_t next_piece_ = 0;
};

}  // namespace

absl::StatusOr<proto::Ceilings> MeasureCeilings(CpuDevice& device,
                                                const CeilingOptions& options) {
  const proto::Hardware& hardware = device.hardware();
  const int64_t l1_bytes =
      hardware.has_l1d_bytes() ? hardware.l1d_bytes() : 32 << 10;
  const int64_t memory_bytes = MemoryBytesToRead(hardware, device.threads());
  Rates rates(device, options.time_per_number, memory_bytes);
  OPTRAIL_RETURN_IF_ERROR(rates.Allocate());

  // On a busy machine the reading of all threads may be the lower one, although
  // they can do whatever one of them can.
  proto::Ceilings ceilings;
  const double flop = rates.Flop(1);
  ceilings.set_flop_per_s_one_thread(flop);
  ceilings.set_flop_per_s_all_threads(
      std::max(flop, rates.Flop(device.threads())));
  ceilings.set_memory_buffer_bytes(memory_bytes);
  const double read = rates.MemoryRead(false);
  if (!hardware.has_l2_bytes() || !hardware.has_l3_bytes()) {
    const CacheSizes sizes = rates.SeenSizes(read);
    if (sizes.l2_bytes > 0) ceilings.set_l2_bytes_seen(sizes.l2_bytes);
    if (sizes.l3_bytes > 0) ceilings.set_l3_bytes_seen(sizes.l3_bytes);
  }
  // A third of a cache leaves room for other data. A buffer for the L3 must not
  // fit into the L2.
  const int64_t shown_l2_bytes = tuning::L2Bytes(hardware, ceilings);
  const int64_t l2_bytes = shown_l2_bytes > 0 ? shown_l2_bytes : 512 << 10;
  const int64_t l3_bytes = tuning::L3Bytes(hardware, ceilings);
  ceilings.set_l1_read_bytes_per_s(rates.Read(l1_bytes / 3));
  ceilings.set_l2_read_bytes_per_s(rates.Read(l2_bytes / 3));
  const int64_t l3_floor_bytes = 2 * l2_bytes;
  if (l3_bytes / 3 >= l3_floor_bytes) {
    ceilings.set_l3_read_bytes_per_s(
        rates.Read(std::min(l3_bytes / 3, 2 * l3_floor_bytes)));
  }
  ceilings.set_memory_read_bytes_per_s_one_thread(read);
  ceilings.set_memory_read_bytes_per_s_all_threads(
      std::max(read, rates.MemoryRead(true)));
  const double copy = rates.MemoryCopy(false);
  ceilings.set_memory_copy_bytes_per_s_one_thread(copy);
  ceilings.set_memory_copy_bytes_per_s_all_threads(
      std::max(copy, rates.MemoryCopy(true)));
  ceilings.set_measured_unix_ns(Clock::Real()->WallNs());
  return ceilings;
}

}  // namespace optrail::ops
