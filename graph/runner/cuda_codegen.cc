// Generated kernels as CUDA: what codegen.cc prints as C++, with a thread for
// each element or vector of elements, a block for each row.

#include "graph/runner/cuda_codegen.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace optrail::graph {
namespace {

constexpr int kWarp = 32;
// Fewer threads leave multiprocessors idle: then vectors get shorter.
constexpr int64_t kLeastThreads = 1 << 15;
constexpr int64_t kVectorBytes = 16;
// More blocks than a GPU runs at once, each of which walks on.
constexpr int64_t kMostBlocks = 4096;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Divisions of 32 bits are several times as fast.
std::string IndexType(const Nest& nest) {
  int64_t most = Elements(nest.dims);
  for (const Dims* strides : nest.strides) {
    int64_t reach = 0;
    for (size_t d = 0; d < strides->size(); ++d) {
      reach += std::abs((*strides)[d]) * nest.dims[d];
    }
    most = std::max(most, reach);
  }
  return most < (int64_t{1} << 30) ? "int" : "int64_t";
}

// True if the innermost loop reads neighbours: itself, or in a row that does
// not depend on that loop.
bool IsVectorLoad(const Expression& expression, const Expression::Line& line) {
  if (line.operand < 0 || line.strides.back() != 1) return false;
  if (line.index < 0) return true;
  const Expression::Line& index = expression.lines()[line.index];
  return index.operand >= 0 && index.index < 0 && index.strides.back() == 0;
}

// True if elements at all places of these strides begin vectors of `vector`.
bool IsAligned(const Dims& strides, int64_t offset, int64_t vector) {
  for (size_t d = 0; d + 1 < strides.size(); ++d) {
    if (strides[d] % vector != 0) return false;
  }
  return offset % vector == 0;
}

// Elements that a thread reads and writes at a stroke, of loops whose innermost
// one has `neighbours` iterations, if `results` vectors of one are at least
// `least`.
int64_t VectorOf(const Expression& expression, int64_t neighbours,
                 int64_t results, int64_t least, const Dims& y_strides,
                 int64_t y_offset, proto::ElementType y_type) {
  if (y_strides.back() != 1) return 1;
  int64_t bytes = ElementBytes(y_type);
  for (const Expression::Line& line : expression.lines()) {
    if (IsVectorLoad(expression, line)) {
      bytes = std::max(bytes, ElementBytes(line.type));
    }
  }
  int64_t vector = kVectorBytes / bytes;
  const auto fits = [&] {
    if (neighbours % vector != 0 || !IsAligned(y_strides, y_offset, vector)) {
      return false;
    }
    for (const Expression::Line& line : expression.lines()) {
      if (IsVectorLoad(expression, line) &&
          (!IsAligned(line.strides, line.offset, vector) ||
           (line.index >= 0 && line.stride % vector != 0))) {
        return false;
      }
    }
    return true;
  };
  while (vector > 1 && (results / vector < least || !fits())) vector /= 2;
  return vector;
}

// The place of a vector that begins at `from` in the innermost loop.
std::string VectorPlace(Dims strides, int64_t offset) {
  strides.back() = 0;
  return absl::StrCat(offset == 0 ? "" : absl::StrCat(offset, " + "),
                      Place(strides), " + from");
}

// Reads the vectors of the expression: value v is q<v>, which is marked.
std::string VectorReads(const Expression& expression, int64_t vector,
                        const std::string& indent,
                        std::vector<bool>* in_vectors) {
  in_vectors->assign(expression.lines().size(), false);
  std::string text;
  for (size_t v = 0; v < expression.lines().size(); ++v) {
    const Expression::Line& line = expression.lines()[v];
    if (!IsVectorLoad(expression, line)) continue;
    (*in_vectors)[v] = true;
    std::string row;
    if (line.index >= 0) {
      const Expression::Line& index = expression.lines()[line.index];
      row = absl::StrCat(" + Index(a", index.operand, "[", Place(index.strides),
                         "], ", line.size, ") * ", line.stride);
    }
    absl::StrAppend(&text, indent, "const auto q", v, " = LoadVector<", vector,
                    ">(a", line.operand, " + ", VectorPlace(line.strides, 0),
                    row, ");\n");
  }
  return text;
}

struct LoopText {
  std::string text;
  int64_t blocks = 1;
};

LoopText LoopOf(Expression expression, const Dims& dims, Dims y_strides,
                int y_operand, int64_t y_offset) {
  const Nest nest = NestOfLoop(expression, dims, y_strides);
  const size_t last = nest.dims.size() - 1;
  const int64_t all = Elements(nest.dims);
  const int64_t vector =
      VectorOf(expression, nest.dims.back(), all, kLeastThreads, y_strides,
               y_offset, LastType(expression));
  const int64_t count = all / vector;
  const std::string type = IndexType(nest);
  Dims steps = nest.dims;
  steps[last] /= vector;
  std::vector<size_t> loops(nest.dims.size());
  std::iota(loops.begin(), loops.end(), 0);
  const std::string y_at = absl::StrCat(
      y_offset == 0 ? "" : absl::StrCat(y_offset, " + "), Place(y_strides));
  std::string text = absl::StrCat(Pointers(expression),
                                  YPointer(LastType(expression), y_operand),
                                  GridLoop(type, count));
  if (vector == 1) {
    absl::StrAppend(&text, Decompose(type, "i", loops, steps, "    "),
                    Lines(expression, "    "), "    y[", y_at,
                    "] = ", Last(expression), ";\n  }\n");
    return {text, CudaBlocks(count)};
  }
  // The same with the innermost place as that of the vector.
  std::vector<bool> in_vectors;
  const std::string reads =
      VectorReads(expression, vector, "    ", &in_vectors);
  const std::string result = absl::StrCat(
      "Vector<", TypeName(LastType(expression)), ", ", vector, ">");
  absl::StrAppend(
      &text, Decompose(type, "i", loops, steps, "    "), "    const ", type,
      " from = i", last, " * ", vector, ";\n", reads, "    ", result,
      " q;\n#pragma unroll\n    for (int l = 0; l < ", vector,
      "; ++l) {\n      const ", type, " i", last, " = from + l;\n",
      Lines(expression, "      ", in_vectors),
      "      q.at[l] = ", Last(expression), ";\n    }\n    *reinterpret_cast<",
      result, "*>(y + ", VectorPlace(y_strides, y_offset), ") = q;\n  }\n");
  return {text, CudaBlocks(count)};
}

// Threads that share a result.
int ThreadsOfResult(int64_t results, int64_t reduced) {
  if (reduced < kWarp) return 1;
  return reduced <= 1024 || results >= kLeastThreads / kWarp ? kWarp
                                                             : kCudaThreads;
}

// The dimensions that a reduction keeps and those that it sums up, and how many
// places each have.
struct Split {
  std::vector<size_t> kept, gone;
  int64_t results = 1, count = 1;
};

Split SplitOf(const Nest& nest) {
  Split split;
  for (size_t d = 0; d < nest.dims.size(); ++d) {
    (nest.reduced[d] ? split.gone : split.kept).push_back(d);
    (nest.reduced[d] ? split.count : split.results) *= nest.dims[d];
  }
  return split;
}

// A thread for each vector of neighbouring results.
GeneratedKernel ReduceByRows(const std::string& op,
                             const Expression& expression, const Nest& nest,
                             const Dims& y_strides, int y_operand,
                             proto::ElementType y_type) {
  const std::string index = IndexType(nest);
  const std::string type = ValueName(LastType(expression));
  const size_t last = nest.dims.size() - 1;
  auto [kept, gone, results, count] = SplitOf(nest);
  Dims strides = y_strides;
  for (const size_t d : gone) strides[d] = 0;
  constexpr int64_t kLeastResults = 1 << 13;
  const int64_t vector = VectorOf(expression, nest.dims.back(), results,
                                  kLeastResults, strides, 0, y_type);
  Dims steps = nest.dims;
  steps[last] /= vector;
  results /= vector;
  std::vector<bool> in_vectors;
  const std::string reads =
      vector == 1 ? "" : VectorReads(expression, vector, "    ", &in_vectors);
  const std::string lanes =
      absl::StrCat("for (int l = 0; l < ", vector, "; ++l) ");
  std::string text = absl::StrCat(
      Pointers(expression), YPointer(y_type, y_operand),
      "  const int64_t result = int64_t(block) * ", kCudaThreads,
      " + threadIdx.x;\n  if (result >= ", results, ") return;\n",
      Decompose(index, "result", kept, steps, "  "), "  const ", index,
      " from = i", last, " * ", vector, ";\n  ", type, " acc[", vector,
      "];\n#pragma unroll\n  ", lanes, "acc[l] = ", StartOf(op, type),
      ";\n#pragma unroll 4\n  for (", index, " r = 0; r < ", count,
      "; ++r) {\n", Decompose(index, "r", gone, nest.dims, "    "), reads,
      "#pragma unroll\n    ", lanes, "{\n      const ", index, " i", last,
      " = from + l;\n", Lines(expression, "      ", in_vectors),
      "      acc[l] = ", StepOf(op), "(acc[l], ", Last(expression),
      ");\n    }\n  }\n");
  const std::string result =
      absl::StrCat("Vector<", TypeName(y_type), ", ", vector, ">");
  absl::StrAppend(
      &text, "  ", result, " q;\n#pragma unroll\n  ", lanes, "q.at[l] = acc[l]",
      op == "reduce_mean" ? absl::StrCat(" / ", type, "(", count, ")") : "",
      ";\n  *reinterpret_cast<", result, "*>(y + ", VectorPlace(strides, 0),
      ") = q;\n");
  return {text, CeilDiv(results, kCudaThreads), kCudaThreads};
}

GeneratedKernel ReduceOf(const std::string& op, Expression expression,
                         const Dims& dims, const std::vector<bool>& reduced,
                         Dims y_strides, int y_operand,
                         proto::ElementType y_type) {
  const ReductionNest of =
      NestOfReduction(expression, dims, reduced, y_strides);
  const Nest& nest = of.nest;
  if (of.by_rows) {
    return ReduceByRows(op, expression, nest, y_strides, y_operand, y_type);
  }
  const std::string index = IndexType(nest);
  const std::string type = ValueName(LastType(expression));
  auto [kept, gone, results, count] = SplitOf(nest);
  Dims kept_strides = y_strides;
  for (const size_t d : gone) kept_strides[d] = 0;
  const int threads = ThreadsOfResult(results, count);
  const std::string step = absl::StrCat(
      "[](", type, " a, ", type, " b) { return ", StepOf(op), "(a, b); }");
  std::string text = absl::StrCat(
      Pointers(expression), YPointer(y_type, y_operand),
      "  const int64_t thread = int64_t(block) * ", kCudaThreads,
      " + threadIdx.x;\n  const ", index, " result = thread / ", threads,
      ";\n  if (thread >= ", results * threads, ") return;\n",
      Decompose(index, "result", kept, nest.dims, "  "), "  ", type,
      " acc = ", StartOf(op, type), ";\n  for (", index, " r = thread % ",
      threads, "; r < ", count, "; r += ", threads, ") {\n",
      Decompose(index, "r", gone, nest.dims, "    "), Lines(expression, "    "),
      "    acc = ", StepOf(op), "(acc, ", Last(expression), ");\n  }\n");
  if (threads == kWarp) {
    absl::StrAppend(&text, "  acc = OfWarp(acc, ", step, ");\n");
  } else if (threads == kCudaThreads) {
    absl::StrAppend(&text, "  acc = OfBlock<", kCudaThreads, ">(acc, ", step,
                    ");\n");
  }
  absl::StrAppend(
      &text, "  if (thread % ", threads, " == 0) y[", Place(kept_strides),
      "] = acc",
      op == "reduce_mean" ? absl::StrCat(" / ", type, "(", count, ")") : "",
      ";\n");
  return {text, CeilDiv(results * threads, kCudaThreads), kCudaThreads};
}

GeneratedKernel NormOf(const RowNormLoops& loops) {
  int64_t vector = kVectorBytes / ElementBytes(loops.type);
  while (loops.cols % vector != 0) vector /= 2;
  const int64_t vectors = loops.cols / vector;
  int threads = kWarp;
  while (threads < 1024 && threads < vectors) threads *= 2;
  const std::string type = TypeName(loops.type);
  int next = 0;
  const auto operand = [&](bool is_there, const char* qualifier) {
    return is_there
               ? absl::StrCat("static_cast<", qualifier, type, "*>(p[", next++,
                              "])")
               : absl::StrCat("static_cast<", qualifier, type, "*>(nullptr)");
  };
  std::vector<std::string> arguments = {
      operand(true, "const "), operand(loops.of_sum, "const "),
      operand(true, "const "), operand(loops.has_bias, "const "),
      operand(true, ""),       operand(loops.keeps_sum, "")};
  arguments.push_back(absl::StrFormat("%.9ef", loops.epsilon));
  return {absl::StrCat("  NormRow<", loops.cols, ", ", vector, ", ",
                       CeilDiv(vectors, threads), ", ", threads, ", ",
                       loops.centred ? "true" : "false", ">(block, ",
                       absl::StrJoin(arguments, ", "), ");\n"),
          loops.rows, threads};
}

GeneratedKernel ProductOf(const ProductLoops& l) {
  // Large tiles read less, and small ones keep more of a GPU at work.
  constexpr int64_t kLarge = 128, kSmall = 64, kEnoughTiles = 128;
  const int64_t large =
      CeilDiv(l.m, kLarge) * CeilDiv(l.n, kLarge) * Elements(l.batch);
  const int64_t tile = large >= kEnoughTiles ? kLarge : kSmall;
  const int64_t rows = CeilDiv(l.m, tile), columns = CeilDiv(l.n, tile);
  const int64_t tiles = rows * columns;
  std::vector<size_t> loops(l.batch.size());
  std::iota(loops.begin(), loops.end(), 0);
  std::string text = absl::StrCat(
      ReadPointer("a", l.type, 0), ReadPointer("b", l.type, 1),
      l.has_bias ? ReadPointer("bias", l.type, 2)
                 : absl::StrCat("  const ", TypeName(l.type),
                                "* const bias = nullptr;\n"),
      YPointer(l.type, l.has_bias ? 3 : 2), "  const int64_t tile = block % ",
      tiles, ", batch = block / ", tiles, ";\n",
      Decompose("int64_t", "batch", loops, l.batch, "  "));
  absl::StrAppend(
      &text, "  Product<", tile, ", ", l.m, ", ", l.n, ", ", l.k, ", ", l.a_m,
      ", ", l.a_k, ", ", l.b_k, ", ", l.b_n, ", ", l.y_m, ", ", l.y_n, ">(a + ",
      Place(l.a_batch), ", b + ", Place(l.b_batch), ", bias, y + ",
      Place(l.y_batch), ", tile / ", columns, " * ", tile, ", tile % ", columns,
      " * ", tile, ", [](float v) { return ",
      l.activation == "relu"   ? "v < 0 ? 0.0f : v"
      : l.activation == "gelu" ? "0.5f * v * (1.0f + Erf(v * 0.70710678f))"
                               : "v",
      "; });\n");
  constexpr int64_t kDepth = 16;  // as in Product
  return {text, tiles * Elements(l.batch), kCudaThreads,
          2 * kDepth * (tile + 4) * static_cast<int64_t>(sizeof(float))};
}

class Cuda : public LoopPrinter {
 public:
  GeneratedKernel Loop(const Expression& expression, const Dims& dims,
                       const Dims& y_strides, int y_operand) const override {
    const LoopText loop = LoopOf(expression, dims, y_strides, y_operand, 0);
    return {loop.text, loop.blocks, kCudaThreads};
  }
  GeneratedKernel Concat(const std::vector<ConcatPart>& parts,
                         const Dims& y_strides, int y_operand) const override {
    GeneratedKernel kernel;
    kernel.threads = kCudaThreads;
    for (const ConcatPart& part : parts) {
      const LoopText loop = LoopOf(part.expression, part.dims, y_strides,
                                   y_operand, part.y_offset);
      absl::StrAppend(&kernel.source, "  {\n", loop.text, "  }\n");
      kernel.blocks = std::max(kernel.blocks, loop.blocks);
    }
    return kernel;
  }
  GeneratedKernel Reduce(const std::string& op, const Expression& expression,
                         const Dims& dims, const std::vector<bool>& reduced,
                         const Dims& y_strides, int y_operand,
                         proto::ElementType y_type) const override {
    return ReduceOf(op, expression, dims, reduced, y_strides, y_operand,
                    y_type);
  }
  GeneratedKernel RowNorm(const RowNormLoops& loops) const override {
    return NormOf(loops);
  }
  GeneratedKernel Conv(const WindowLoops& loops) const override {
    return CudaConv(loops);
  }
  GeneratedKernel Pool(const WindowLoops& loops, bool maximum,
                       bool count_padding) const override {
    return CudaPool(loops, maximum, count_padding);
  }
  GeneratedKernel Product(const ProductLoops& loops) const override {
    return ProductOf(loops);
  }
  GeneratedKernel Merge(
      const std::vector<GeneratedKernel>& kernels,
      const std::vector<std::vector<int>>& operands) const override {
    GeneratedKernel merged;
    merged.threads = kernels[0].threads;
    merged.blocks = 0;
    merged.source =
        "  const unsigned every = block;\n  void* const* const all = p;\n";
    for (size_t k = 0; k < kernels.size(); ++k) {
      OPTRAIL_CHECK(kernels[k].threads == merged.threads);
      std::vector<std::string> own;
      for (const int operand : operands[k]) {
        own.push_back(absl::StrCat("all[", operand, "]"));
      }
      const int64_t end = merged.blocks + kernels[k].blocks;
      absl::StrAppend(
          &merged.source, "  if (every >= ", merged.blocks, " && every < ", end,
          ") {\n  const unsigned block = every - ", merged.blocks,
          ", blocks = ", kernels[k].blocks, ";\n  void* const p[] = {",
          absl::StrJoin(own, ", "), "};\n", kernels[k].source, "  }\n");
      merged.blocks = end;
      merged.shared_bytes += kernels[k].shared_bytes;
    }
    return merged;
  }

  std::string File(const std::vector<GeneratedKernel>& kernels,
                   const std::vector<int>& operands) const override {
    OPTRAIL_CHECK(kernels.size() == operands.size());
    std::string text =
        absl::StrCat(kCudaHead, kCudaPredecessors, SharedFunctions(),
                     kCudaBlocks, ElementwiseFunctions(kernels));
    for (size_t k = 0; k < kernels.size(); ++k) {
      std::vector<std::string> parameters, names;
      for (int i = 0; i < operands[k]; ++i) {
        names.push_back(absl::StrCat("p", i));
        parameters.push_back(absl::StrCat("void* p", i));
      }
      absl::StrAppend(
          &text, "\nextern \"C\" __global__ void __launch_bounds__(",
          kernels[k].threads, ") ", KernelName(k), "(",
          absl::StrJoin(parameters, ", "),
          ") {\n  AwaitPredecessors();\n  void* const p[] = {",
          absl::StrJoin(names, ", "),
          "};\n  const unsigned block = blockIdx.x, blocks = gridDim.x;\n",
          kernels[k].source, "}\n");
    }
    return text;
  }
};

}  // namespace

std::string YPointer(proto::ElementType type, int operand) {
  return absl::StrCat("  auto* const y = static_cast<", TypeName(type), "*>(p[",
                      operand, "]);\n");
}

std::string ReadPointer(const char* name, proto::ElementType type,
                        int operand) {
  return absl::StrCat("  const auto* const ", name, " = static_cast<const ",
                      TypeName(type), "*>(p[", operand, "]);\n");
}

std::string Decompose(const std::string& type, const std::string& from,
                      const std::vector<size_t>& loops, const Dims& dims,
                      const std::string& indent) {
  if (loops.empty()) return "";
  std::string text =
      absl::StrCat(indent, type, " rest", loops[0], " = ", from, ";\n");
  const std::string rest = absl::StrCat("rest", loops[0]);
  for (size_t i = loops.size(); i-- > 0;) {
    if (i == 0) {
      absl::StrAppend(&text, indent, "const ", type, " i", loops[i], " = ",
                      rest, ";\n");
    } else {
      absl::StrAppend(&text, indent, "const ", type, " i", loops[i], " = ",
                      rest, " % ", dims[loops[i]], ";\n", indent, rest,
                      " /= ", dims[loops[i]], ";\n");
    }
  }
  return text;
}

std::string GridLoop(const std::string& type, int64_t count) {
  return absl::StrCat("  for (", type, " i = block * ", kCudaThreads,
                      " + threadIdx.x; i < ", count, "; i += blocks * ",
                      kCudaThreads, ") {\n");
}

int64_t CudaBlocks(int64_t threads) {
  return std::clamp<int64_t>(CeilDiv(threads, kCudaThreads), 1, kMostBlocks);
}

const LoopPrinter& CudaPrinter() {
  static const auto* const printer = new Cuda();
  return *printer;
}

}  // namespace optrail::graph
