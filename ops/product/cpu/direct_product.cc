#include "ops/product/cpu/direct_product.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ops/lib/cpu_frame.h"
#include "ops/product/cpu/blocked_product.h"
#include "ops/product/cpu/short_sums.h"
#include "ops/product/cpu/strips.h"

namespace optrail::ops {
namespace {

// A, B and C of so many floats are in L1 and near parts of L2.
constexpr int64_t kMostFloats = (128 << 10) / sizeof(float);
// Or B is in L1, and a tile has all columns, so that A and C are
// passed once.
constexpr int64_t kMostOfB = (16 << 10) / sizeof(float);
constexpr int64_t kMostVectorsOfTile = 4;
// Rows of a strip before the same ones of the next strip, where C is not near:
// the hardware follows so many rows that are written from end to end. With 32
// rows 64 x 128256 x 4 took three times as long.
constexpr int64_t kRowsOfStrip = 8;
// Or so little is added up that storing C takes longest, and rows are so few
// that B had better be passed once for each tile of rows than C in columns.
constexpr int64_t kShortSum = 16;
constexpr int64_t kFewRows = 64;
// Or B is in L2, and rows are so few that it is passed once or twice.
constexpr int64_t kVeryFewRows = 16;
constexpr int64_t kMostOfBInL2 = (512 << 10) / sizeof(float);
constexpr int kMostRows = 14, kMostVectors = 12;

// Columns beyond whole vectors that are few enough for vectors along rows.
constexpr int64_t kFewLastColumns = 6;

RegisterTile TileOf(int rows, int vectors) {
  return FindRegisterTile(rows, vectors, /*k_unroll=*/4);
}

// What a tile takes, in cycles: its multiplications, or waiting for those of
// the same sum, or loads, and what comes before and after them. More than 22
// sums do not all stay in registers there, and rows beyond eight take more
// addresses than there are registers. Fitted to a Zen 4 core; what counts is
// their ratio.
double TileCycles(int rows, int vectors, int64_t k) {
  const int sums = rows * vectors;
  const double waiting = sums > 2 ? 2 : 1;
  const double loads = 0.5 * rows + 2.0 * vectors;  // of B across two lines
  const double step =
      std::max({static_cast<double>(sums), waiting, loads}) + 0.2 * loads;
  const double around = 22.0 + std::max(0, sums - 12) +
                        (sums > 22 ? 25.0 : 0.0) + (rows > 8 ? 18.0 : 0.0);
  return around + static_cast<double>(k) * step;
}
constexpr double kCallCycles = 25;

// Lengths that follow each other.
struct Parts {
  std::vector<int> parts;
  double cycles = std::numeric_limits<double>::infinity();
};

// `part`, as often as it fits, and the cheapest parts of what is left, each of
// which costs cycles(part).
template <class Cycles>
Parts PartsOf(int64_t length, int part, const Cycles& cycles) {
  Parts all;
  all.parts.assign(length / part, part);
  all.cycles = kCallCycles + static_cast<double>(length / part) * cycles(part);
  const int64_t left = length % part;
  if (left == 0) return all;
  Parts best;
  for (auto next = static_cast<int>(left); next > 0; --next) {
    if (cycles(next) == std::numeric_limits<double>::infinity()) continue;
    Parts rest = PartsOf(left, next, cycles);
    if (rest.cycles < best.cycles) best = std::move(rest);
  }
  all.parts.insert(all.parts.end(), best.parts.begin(), best.parts.end());
  all.cycles += best.cycles;
  return all;
}

// The cheapest of those.
template <class Cycles>
Parts CheapestParts(int64_t length, int most, const Cycles& cycles) {
  Parts best;
  for (int part = 1; part <= std::min<int64_t>(most, length); ++part) {
    Parts parts = PartsOf(length, part, cycles);
    if (parts.cycles < best.cycles) best = std::move(parts);
  }
  return best;
}

// The rows of tiles of so many vectors, one below the other.
Parts RowsOf(const ProductSize& size, int vectors) {
  return CheapestParts(size.m, kMostRows, [&](int rows) {
    return TileOf(rows, vectors).plain_a == nullptr
               ? std::numeric_limits<double>::infinity()
               : TileCycles(rows, vectors, size.k);
  });
}

}  // namespace

absl::optional<DirectProduct> DirectProduct::Plan(const Blocking& blocking,
                                                  const ProductSize& size,
                                                  const Strides& strides) {
  if (blocking.pack_a || blocking.a_transposed || blocking.b_transposed ||
      (blocking.pack_b && !blocking.b_in_panels)) {
    return absl::nullopt;
  }
  DirectProduct direct;
  direct.size_ = size;
  direct.strides_ = strides;
  direct.rows_at_once_ = size.m;
  if (direct.AddStrips(blocking)) return direct;
  const int64_t all = size.m * size.k + size.k * size.n + size.m * size.n;
  const bool is_one_tile =
      size.k * size.n <= kMostOfB && size.n <= kMostVectorsOfTile * TileLanes();
  if ((all <= kMostFloats || is_one_tile ||
       (size.k <= kShortSum && size.m <= kFewRows) ||
       (size.m <= kVeryFewRows && size.k * size.n <= kMostOfBInL2)) &&
      direct.AddTiles(blocking)) {
    return direct;
  }
  return absl::nullopt;
}

// What all calls have in common that begin at (row, column) and are as wide.
DirectProduct::Step DirectProduct::StepAt(const Blocking& blocking, int64_t row,
                                          int64_t column, int64_t width) const {
  const bool in_panels = blocking.b_in_panels;
  const int64_t panel = blocking.tile.columns;
  Step step;
  step.column = column;
  step.a_at = row * strides_.a;
  step.b_at = in_panels ? column / panel * strides_.b + column % panel : column;
  step.c_at = row * strides_.c + column;
  TileCall& call = step.call;
  call.k = size_.k;
  call.lda = strides_.a;
  call.ldb = in_panels ? panel : strides_.b;
  call.ldc = strides_.c;
  call.columns = std::min(width, size_.n - column);
  call.b_step = in_panels ? strides_.b : width;
  call.c_step = width;
  return step;
}

bool DirectProduct::AddStrips(const Blocking& blocking) {
  const int64_t lanes = TileLanes();
  const int64_t most = MostVectorsOfStrip(size_.k);
  if (most == 0) return false;
  const int64_t vectors =
      CeilDiv(blocking.b_in_panels ? blocking.tile.columns : size_.n, lanes);
  // To read half of each row of a panel, and then the others, takes longer.
  if (blocking.b_in_panels && vectors > most) return false;
  // All are as wide, but for a last one.
  const int64_t width = CeilDiv(vectors, CeilDiv(vectors, most)) * lanes;
  const auto add = [&](int64_t column, int64_t columns, int64_t strips) {
    const int64_t here = CeilDiv(columns, lanes);
    const StripFunctions strip = FindStrip(size_.k, here);
    Step step = StepAt(blocking, 0, column, here * lanes);
    step.multiply = strip.plain;
    step.ends = strip.ends;
    step.call.rows = size_.m;
    step.call.tiles = strips;
    steps_.push_back(step);
  };
  const int64_t whole = size_.n / width, left = size_.n % width;
  if (whole > 0) add(0, width, whole);
  if (left > 0) add(whole * width, left, 1);
  if (blocking.prefetch_c && size_.n > width) {
    rows_at_once_ = std::min(size_.m, kRowsOfStrip);
  }
  is_of_strips_ = true;
  return true;
}

bool DirectProduct::AddTiles(const Blocking& blocking) {
  const int64_t lanes = TileLanes();
  const int64_t last = size_.n % lanes;
  if (!blocking.b_in_panels && size_.n > lanes && last > 0 &&
      last <= kFewLastColumns && HasShortSums({size_.m, last, size_.k})) {
    last_columns_ = last;
  }
  const int64_t in_tiles = size_.n - last_columns_;
  std::vector<Parts> rows(1);
  for (int vectors = 1; vectors <= kMostVectors; ++vectors) {
    rows.push_back(RowsOf(size_, vectors));
  }
  std::vector<int> columns;
  if (blocking.b_in_panels) {
    const auto width = static_cast<int>(blocking.tile.columns / lanes);
    for (int64_t left = CeilDiv(size_.n, lanes); left > 0; left -= width) {
      columns.push_back(static_cast<int>(std::min<int64_t>(left, width)));
    }
  } else {
    columns =
        CheapestParts(CeilDiv(in_tiles, lanes), kMostVectors, [&](int vectors) {
          return rows[vectors].cycles;
        }).parts;
  }
  int64_t column = 0;
  for (size_t i = 0; i < columns.size();) {
    const int vectors = columns[i];
    const int64_t width = vectors * lanes;
    // Those that are as wide, but for a last one that is not whole.
    int64_t tiles = 1;
    while (i + tiles < columns.size() && columns[i + tiles] == vectors &&
           column + (tiles + 1) * width <= in_tiles) {
      ++tiles;
    }
    AddColumns(blocking, column, vectors, tiles, rows[vectors].parts);
    column += tiles * width;
    i += tiles;
  }
  return std::all_of(steps_.begin(), steps_.end(),
                     [](const Step& step) { return step.multiply != nullptr; });
}

void DirectProduct::AddColumns(const Blocking& blocking, int64_t column,
                               int vectors, int64_t tiles,
                               const std::vector<int>& rows) {
  int64_t runs = 0;  // of tiles of as many rows
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || rows[i] != rows[i - 1]) ++runs;
  }
  const bool side_by_side =
      tiles > 1 && static_cast<int64_t>(rows.size()) <= runs * tiles;
  const int64_t columns = side_by_side ? 1 : tiles;
  for (int64_t j = 0; j < columns; ++j) {
    int64_t row = 0;
    for (size_t i = 0; i < rows.size();) {
      size_t end = i + 1;
      while (!side_by_side && end < rows.size() && rows[end] == rows[i]) ++end;
      const RegisterTile tile = TileOf(rows[i], vectors);
      Step step =
          StepAt(blocking, row, column + j * tile.columns, tile.columns);
      TileCall& call = step.call;
      call.rows = tile.rows;
      if (side_by_side) {
        call.tiles = tiles;
      } else {
        call.tiles = static_cast<int64_t>(end - i);
        call.a_step = tile.rows * strides_.a;
        call.b_step = 0;
        call.c_step = tile.rows * strides_.c;
      }
      step.multiply = call.columns < tile.columns && !blocking.b_in_panels
                          ? tile.plain_a_edge
                          : tile.plain_a;
      step.ends = step.multiply;
      steps_.push_back(step);
      row += static_cast<int64_t>(end - i) * tile.rows;
      i = end;
    }
  }
}

void DirectProduct::Multiply(const float* a, const float* b, float* c,
                             const Epilogue& epilogue) const {
  const int64_t last = size_.n - last_columns_;
  if (last_columns_ > 0) {
    MultiplyShortSums({size_.m, last_columns_, size_.k}, a, strides_.a,
                      b + last, {strides_.b, 1}, /*shift=*/nullptr, c + last,
                      strides_.c);
  }
  if (epilogue.changes_nothing() && rows_at_once_ == size_.m) {
    for (const Step& step : steps_) {
      step.multiply(step.call, a + step.a_at, b + step.b_at, c + step.c_at);
    }
    return;
  }
  for (int64_t row = 0; row < size_.m; row += rows_at_once_) {
    MultiplyRows(row, a + row * strides_.a, b, c + row * strides_.c, epilogue);
  }
  if (!EndsInRegisters(epilogue)) {
    ScaleShiftActivate(epilogue, c, size_.m, size_.n, strides_.c);
  } else if (last_columns_ > 0) {
    ScaleShiftActivate(epilogue.From(last), c + last, size_.m, last_columns_,
                       strides_.c);
  }
}

// Some rows of all from `row` on, where `a` and `c` begin.
void DirectProduct::MultiplyRows(int64_t row, const float* a, const float* b,
                                 float* c, const Epilogue& epilogue) const {
  const bool ends = !epilogue.changes_nothing() && EndsInRegisters(epilogue);
  for (const Step& step : steps_) {
    TileCall call = step.call;
    if (rows_at_once_ < size_.m) {
      call.rows = std::min(rows_at_once_, size_.m - row);
    }
    if (ends) {
      const Epilogue ending = epilogue.From(step.column);
      call.scale = ending.scale;
      call.shift = ending.shift;
      call.relu = ending.activation == Activation::kRelu;
    }
    (ends ? step.ends : step.multiply)(call, a + step.a_at, b + step.b_at,
                                       c + step.c_at);
  }
}

}  // namespace optrail::ops
