#ifndef OPTRAIL_OPS_LIB_ROWS_CUH_
#define OPTRAIL_OPS_LIB_ROWS_CUH_

// Rows of a dense matrix, read and written in aligned words of VECTOR elements
// wherever they start.
//
// Rows whose length is no multiple of VECTOR start in the middle of a word. With
// ODD 1 a row is the words that hold its elements: element j of word i is in
// column i * VECTOR + j - shift, and the first and the last word also hold
// elements of the neighbouring rows. Loads take whole words, of which Values()
// blanks what is not the row's; StoreWord() writes the row's elements alone.
// With ODD 0 shift is 0, and nothing of this costs anything.
//
// Behind elements.cuh, with the macros VECTOR (elements of 16 bytes where ODD is
// 1) and ODD.

typedef Elements<VECTOR> Vector;

template <typename Int>
struct Words {
  long long first;        // word of the matrix that holds the row's first element
  int shift;              // elements of it that belong to the row before
  Int columns;            // of the row
  Int begin, end;         // words that hold nothing but this row
  Int loadable;           // words that end before the matrix does
  // Words that hold any of the row.
  Int count;

  __device__ __forceinline__ bool IsWhole(Int i) const {
    return !ODD || (i >= begin && i < end);
  }
  // Whether element j of word i is the row's.
  __device__ __forceinline__ bool Has(Int i, int j) const {
    const Int column = i * VECTOR + j - shift;
    return !ODD || (column >= 0 && column < columns);
  }
};

template <typename Int>
__device__ __forceinline__ Words<Int> WordsOfRow(long long row, long long rows,
                                                 Int columns) {
  const long long at = row * columns;
  if (!ODD) {
    const Int count = columns / VECTOR;
    return {at / VECTOR, 0, columns, 0, count, count, count};
  }
  Words<Int> words;
  words.shift = (int)(at % VECTOR);
  words.first = at / VECTOR;
  words.columns = columns;
  words.begin = words.shift > 0;
  words.end = (columns + words.shift) / VECTOR;
  words.count = (columns + words.shift + VECTOR - 1) / VECTOR;
  // Only the last word of the matrix may end behind it.
  words.loadable =
      words.count - ((words.first + words.count) * VECTOR > rows * columns);
  return words;
}

// Word i of the row; what is neither the row's nor in the matrix is anything.
template <typename Int>
__device__ __forceinline__ Vector LoadWord(const Element* x,
                                           const Words<Int>& row, Int i) {
  const Vector* const from = (const Vector*)x + row.first + i;
  if (!ODD || i < row.loadable) return Load(from);
  Vector v = {};
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    if (row.Has(i, j)) v.at[j] = ((const Element*)from)[j];
  }
  return v;
}

// The values of word i, `fill` where it holds other rows'.
template <typename Int>
__device__ __forceinline__ void Values(const Vector& v, const Words<Int>& row,
                                       Int i, float fill,
                                       float (&to)[VECTOR]) {
  ToFloats(v, to);
  if (row.IsWhole(i)) return;
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) to[j] = row.Has(i, j) ? to[j] : fill;
}

template <bool streaming, typename Int>
__device__ __forceinline__ void StoreWord(Element* y, const Words<Int>& row,
                                          Int i, const Vector& v) {
  Vector* const to = (Vector*)y + row.first + i;
  if (row.IsWhole(i)) {
    Store<streaming>(to, v);
    return;
  }
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    if (row.Has(i, j)) ((Element*)to)[j] = v.at[j];
  }
}

// Word i of a vector of `count` elements that starts at a whole word; anything
// outside.
__device__ __forceinline__ Vector LoadAligned(const Element* x, int i,
                                              int count) {
  if (i >= 0 && (i + 1) * VECTOR <= count) return Load((const Vector*)x + i);
  Vector v = {};
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    const int at = i * VECTOR + j;
    if (at >= 0 && at < count) v.at[j] = x[at];
  }
  return v;
}

#if ODD
// Elements [from, from + VECTOR) of two words that follow each other, for
// 0 <= from < VECTOR.
__device__ __forceinline__ Vector Shifted(const Vector& low,
                                          const Vector& high, int from) {
  constexpr int kWords = sizeof(Vector) / 4;
  static_assert(sizeof(Vector) == 16, "words of 16 bytes");
  uint32_t w[2 * kWords];
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    w[i] = ((const uint32_t*)low.at)[i];
    w[kWords + i] = ((const uint32_t*)high.at)[i];
  }
  const int bytes = from * kElementBytes;
#pragma unroll
  for (int i = 0; i < 2 * kWords - 2; ++i) w[i] = bytes & 8 ? w[i + 2] : w[i];
#pragma unroll
  for (int i = 0; i < 2 * kWords - 3; ++i) w[i] = bytes & 4 ? w[i + 1] : w[i];
  Vector v;
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    ((uint32_t*)v.at)[i] =
        kElementBytes == 2 ? __funnelshift_r(w[i], w[i + 1], (bytes & 2) * 8)
                           : w[i];
  }
  return v;
}

#endif

// What stands beside word i of a row, of a vector with an element for each
// column.
template <typename Int>
__device__ __forceinline__ Vector LoadBeside(const Element* x,
                                             const Words<Int>& row, int i) {
#if ODD
  if (row.shift == 0) return LoadAligned(x, i, row.columns);
  return Shifted(LoadAligned(x, i - 1, row.columns),
                 LoadAligned(x, i, row.columns), VECTOR - row.shift);
#else
  return Load((const Vector*)x + i);
#endif
}

#endif  // OPTRAIL_OPS_LIB_ROWS_CUH_
