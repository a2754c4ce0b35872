#ifndef OPTRAIL_OPS_PRODUCT_CPU_DIRECT_PRODUCT_H_
#define OPTRAIL_OPS_PRODUCT_CPU_DIRECT_PRODUCT_H_

// Small products and short sums: all calls to micro-kernels are written down
// beforehand, so that a product of some hundred operations pays for nothing
// else. Nothing is copied. Tiles are those of the least estimated time, of
// several sizes where that leaves no remainder of rows. Masks compute the
// remainder of columns; where sums are short and few columns remain, vectors
// along rows do (short_sums.h). Sums of at most 16 steps are those of strips
// (strips.h), however large the product is, unless panels of B are wider.
//
//   const absl::optional<DirectProduct> direct =
//       DirectProduct::Plan(blocking, size, {lda, ldb, ldc});
//   if (direct.has_value()) direct->Multiply(a, b, c, epilogue);

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "ops/lib/blocks.h"
#include "ops/product/cpu/blocking.h"

namespace optrail::ops {

class DirectProduct {
 public:
  // Floats from one row to the next; of a B in panels from one panel to the
  // next.
  struct Strides {
    int64_t a = 0;
    int64_t b = 0;
    int64_t c = 0;
  };

  // Nothing if the blocking copies or transposes A or B, where this machine has
  // no masks, and for all products but these: in L1 and near parts of L2; of a
  // B in L1 and one tile of columns; of short sums; of a B in L2 and at most
  // 16 rows.
  static absl::optional<DirectProduct> Plan(const Blocking& blocking,
                                            const ProductSize& size,
                                            const Strides& strides);

  bool is_of_strips() const { return is_of_strips_; }

  // C = A * B. Thread-safe.
  void Multiply(const float* a, const float* b, float* c,
                const Epilogue& epilogue) const;

 private:
  // A call: tiles one below the other, or side by side.
  struct Step {
    TileFunction multiply = nullptr;
    TileFunction ends = nullptr;  // with an epilogue
    TileCall call;
    int64_t column = 0;
    int64_t a_at = 0;
    int64_t b_at = 0;
    int64_t c_at = 0;
  };

  // Returns whether strips compute all of it.
  bool AddStrips(const Blocking& blocking);
  bool AddTiles(const Blocking& blocking);
  // `tiles` times as many columns, beside each other, of all rows.
  void AddColumns(const Blocking& blocking, int64_t column, int vectors,
                  int64_t tiles, const std::vector<int>& rows);
  Step StepAt(const Blocking& blocking, int64_t row, int64_t column,
              int64_t width) const;
  void MultiplyRows(int64_t row, const float* a, const float* b, float* c,
                    const Epilogue& epilogue) const;

  std::vector<Step> steps_;
  ProductSize size_;
  Strides strides_;
  bool is_of_strips_ = false;
  int64_t rows_at_once_ = 0;  // all, or those of strips
  int64_t last_columns_ = 0;  // that are computed by vectors along rows
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_DIRECT_PRODUCT_H_
