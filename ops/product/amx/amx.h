#ifndef OPTRAIL_OPS_PRODUCT_AMX_AMX_H_
#define OPTRAIL_OPS_PRODUCT_AMX_AMX_H_

// Intel's Advanced Matrix Extensions, as far as products of bfloat16 need them:
// eight tile registers of 16 rows of 64 bytes, and one instruction that
// multiplies two of them (Intel 64 and IA-32 Architectures Software Developer's
// Manual, volume 1, chapter 18). A row of A holds 32 steps of the sum, a
// row of B two steps of 16 columns as bf16 pairs (pairs.h), a row of sums 16
// floats.
//
//   OPTRAIL_RETURN_IF_ERROR(AmxForBf16());
//   AmxTiles tiles;
//   tiles.Configure({16, 16, 16});   // rows of tiles 0, 1, 2
//   tiles.Zero<0>();
//   tiles.Load<1>(a, lda_bytes);
//   tiles.Load<2>(b, 64);
//   tiles.MultiplyAdd<0, 1, 2>();
//   tiles.Store<0>(sums, 64);
//   tiles.Release();
//
// Loops are templates of the class of tiles, so that tests run them on any
// machine (emulated_tiles.h). The instruction takes denormal inputs for 0 and
// flushes denormal sums, whatever the process has set.

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "ops/lib/blocks.h"

namespace optrail::ops {

inline constexpr int64_t kTileRows = 16;
inline constexpr int64_t kTileBytes = 64;    // of a row
inline constexpr int64_t kTileSteps = 32;    // of the sum, in A
inline constexpr int64_t kTileColumns = 16;  // of B and of sums
// Rows of all eight tiles; 0: not used.
using TileRowCounts = std::array<uint8_t, 8>;

// Whether this processor has the tiles, and instructions for vectors of
// bfloat16 beside them, and the system lets this process use them: it is asked
// once. Unavailable says what is missing.
absl::Status AmxForBf16();

// Rounds rows of floats, `ldx` apart, of which the first `columns` <= 32 count
// and 32 may be read, to nearest even, after `epilogue`, which is none of those
// that need a function: no gelu. NaN stays NaN. Needs AVX512_BF16; as AmxTiles'
// results, denormal ones are 0.
void RoundTilesToBf16(const Epilogue& epilogue, const float* x, int64_t rows,
                      int64_t columns, int64_t ldx, uint16_t* y, int64_t ldy);

#if defined(__x86_64__)

// This thread's tiles. Nothing is kept in the object; what is in the registers
// is lost with Release() and with Configure().
class AmxTiles {
 public:
  void Configure(const TileRowCounts& rows) {
    // The layout that LDTILECFG reads.
    struct alignas(64) {
      uint8_t palette = 1;
      uint8_t start_row = 0;
      uint8_t reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } config;
    for (size_t i = 0; i < rows.size(); ++i) {
      config.rows[i] = rows[i];
      config.row_bytes[i] = rows[i] == 0 ? 0 : kTileBytes;
    }
    asm volatile("ldtilecfg %0" : : "m"(config));
  }

  // Without it the system saves the registers whenever it switches threads.
  void Release() { asm volatile("tilerelease"); }

  template <int kTile>
  void Zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }

  // `stride`: bytes from one row to the next.
  template <int kTile>
  void Load(const void* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
                 :
                 : "r"(from), "r"(stride), "i"(kTile)
                 : "memory");
  }

  // The same for what is not wanted again soon: a hint that it need not take
  // the place of something else in L1.
  template <int kTile>
  void LoadOnce(const void* from, int64_t stride) {
    asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2"
                 :
                 : "r"(from), "r"(stride), "i"(kTile)
                 : "memory");
  }

  template <int kTile>
  void Store(void* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                 :
                 : "r"(to), "r"(stride), "i"(kTile)
                 : "memory");
  }

  // Sums += left * right; the left one has as many rows as the sums.
  template <int kSums, int kLeft, int kRight>
  void MultiplyAdd() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0"
                 :
                 : "i"(kSums), "i"(kLeft), "i"(kRight));
  }

  static void Round(const Epilogue& epilogue, const float* x, int64_t rows,
                    int64_t columns, int64_t ldx, uint16_t* y, int64_t ldy) {
    RoundTilesToBf16(epilogue, x, rows, columns, ldx, y, ldy);
  }
};

#endif  // defined(__x86_64__)

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_AMX_AMX_H_
