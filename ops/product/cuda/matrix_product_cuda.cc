#include "ops/product/cuda/matrix_product_cuda.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ops/lib/cuda_frame.h"

namespace optrail::ops {
namespace {

using cuda::CudaPlan;
using cuda::Knob;

// Blocks in the second dimension of a launch.
constexpr int64_t kMaxBatch = 65535;
constexpr int64_t kTileK = HopperProduct::kTileK;

// A matrix as it is stored, all of a batch one behind the other.
struct Stored {
  int64_t rows, columns;
  bool odd() const { return columns % 8 != 0; }
  int64_t padded() const { return CeilDiv(columns, 8) * 8; }
};
Stored StoredA(const MatrixProduct& product) {
  const auto [batch, m, n, k] = product.size;
  return product.transposed_a ? Stored{batch * k, m} : Stored{batch * m, k};
}
Stored StoredB(const MatrixProduct& product) {
  const auto [batch, m, n, k] = product.size;
  return product.transposed_b ? Stored{batch * n, k} : Stored{batch * k, n};
}

bool IsPadded(const proto::Config& config) {
  for (const proto::KnobValue& value : config.set()) {
    if (value.knob() == "layout") return value.variant() == "padded";
  }
  return false;
}

// Which rows are no multiples of 16 bytes, as the macro UNALIGNED: those of a
// (1), those of b (2), of which there may be padded copies, and those of c (4).
int Unaligned(const MatrixProduct& product, const proto::Config& config) {
  const int loads =
      (StoredA(product).odd() ? 1 : 0) + (StoredB(product).odd() ? 2 : 0);
  return (IsPadded(config) ? 0 : loads) + (product.size.n % 8 != 0 ? 4 : 0);
}

// The copies of a and b in the workspace, which end it.
class Copies {
 public:
  Copies(const MatrixProduct& product, const proto::Config& config) {
    if (!IsPadded(config)) return;
    if (StoredA(product).odd()) a_ = StoredA(product);
    if (StoredB(product).odd()) b_ = StoredB(product);
  }

  int64_t words() const { return a_.rows * a_.padded() / 8 + WordsOfB(); }
  int64_t bytes() const { return BytesOfA() + WordsOfB() * 16; }

  // The operand that the engine loads, or its copy.
  void* A(const CudaPlan& plan, absl::Span<void* const> operands,
          void* workspace) const {
    return a_.rows == 0 ? operands[0] : Begin(plan, workspace);
  }
  void* B(const CudaPlan& plan, absl::Span<void* const> operands,
          void* workspace) const {
    return b_.rows == 0 ? operands[1] : Begin(plan, workspace) + BytesOfA();
  }

  // The arguments of product_copy.
  void Add(const CudaPlan& plan, absl::Span<void* const> operands,
           void* workspace, cuda::CudaArguments* arguments) const {
    struct CopiedMatrix {
      const void* from;
      void* to;
      unsigned rows, columns;
    };
    const auto add = [&](const Stored& of, const void* from, void* to) {
      arguments->Add(CopiedMatrix{from, to, static_cast<unsigned>(of.rows),
                                  static_cast<unsigned>(of.columns)});
    };
    add(a_, operands[0], A(plan, operands, workspace));
    add(b_, operands[1], B(plan, operands, workspace));
  }

 private:
  char* Begin(const CudaPlan& plan, void* workspace) const {
    return static_cast<char*>(workspace) + plan.workspace_bytes - bytes();
  }
  int64_t WordsOfB() const { return b_.rows * b_.padded() / 8; }
  // The engine reads matrices that begin at multiples of 256 bytes.
  int64_t BytesOfA() const {
    return CeilDiv(a_.rows * a_.padded() * 2, 256) * 256;
  }

  Stored a_{0, 8}, b_{0, 8};
};

// Returns whether no tile has rows of two matrices of a batch.
bool IsFlat(const BatchedSize& size, const proto::Config& config) {
  return size.batch == 1 || (size.m % Knob(config, "tile_m") == 0 &&
                             size.n % 64 == 0 && size.k % kTileK == 0);
}

// Elements that lie together in rows of `columns`, or 1 where the kernel walks
// across them.
int64_t VectorOf(bool transposed, int64_t columns) {
  return transposed ? 1 : cuda::VectorOf(columns, 2);
}

CudaPlan SkinnyPlan(const BatchedSize& size, int unaligned,
                    const proto::Config& config) {
  constexpr int64_t kAlign = 1024, kFetchedSteps = 4;
  const int64_t tile_m = Knob(config, "tile_m");
  const int64_t tile_n = Knob(config, "tile_n");
  const int64_t stages = Knob(config, "stages");
  const int64_t split_k = Knob(config, "split_k");
  CudaPlan plan;
  plan.source = "skinny_product.cu";
  plan.function = "skinny_product";
  plan.architecture_specific = true;
  plan.defines = {
      absl::StrCat("CONSUMERS=", tile_n / 64), absl::StrCat("BM=", tile_m),
      absl::StrCat("SPLIT_K=", split_k), absl::StrCat("UNALIGNED=", unaligned)};
  plan.cluster = static_cast<int>(split_k);
  plan.grid_x = static_cast<unsigned>(CeilDiv(size.n, tile_n) *
                                      CeilDiv(size.m, tile_m) * split_k);
  plan.block_x = static_cast<unsigned>(
      128 *
      (tile_n / 64 + HopperProducers(unaligned, tile_n / 64, tile_m / 2)));
  const int64_t ring =
      stages * (kTileK * tile_n * 2 +
                CeilDiv(tile_m * kTileK * 2, kAlign) * kAlign) +
      kFetchedSteps * FetchedBytes(unaligned, tile_m, tile_n);
  plan.dynamic_shared_bytes =
      static_cast<unsigned>(std::max(ring, tile_m * (tile_n + 4) * 4) + kAlign);
  return plan;
}

// Sums of so few steps are written by walking along c.
bool HasShortSums(const BatchedSize& size) {
  return size.k <= 32 && size.n >= 64;
}

// How thin_product.cu computes a product: which of its forms, and what its
// threads share.
struct ThinForm {
  // The macro FORM.
  enum Form { kSumsOfFew, kLongRows, kLongColumns };
  Form form = kSumsOfFew;
  bool flipped = false;
  int64_t few = 1;
  int64_t lanes = 1, rows = 1;
  int64_t period = 1;  // rows of c so far apart start alike within words
  int64_t side = 1;    // threads with words of one row of c
  int64_t grid = 1;

  explicit ThinForm(const MatrixProduct& product) {
    // Threads and blocks that keep a large GPU busy.
    constexpr int64_t kThreads = 256, kBlocks = 1024, kBusy = 65536;
    const auto [batch, m, n, k] = product.size;
    if (HasShortSums(product.size)) {
      constexpr int64_t kBlock = 128, kMostRows = 64;
      few = k;
      while (period * n % 8 != 0) period *= 2;
      period = std::min(period, m);
      const int64_t words = n % 8 == 0 ? n / 8 : (n + 14) / 8;
      side = kBlock;
      while (side > 8 && side / 2 >= words) side /= 2;
      const int64_t tiles = CeilDiv(words, side);
      // A thread has two rows at once.
      const int64_t least = std::max<int64_t>(4, kBlock / side * 2);
      rows = std::min(
          CeilDiv(m, period),
          std::clamp<int64_t>(batch * tiles * m / kBlocks, least, kMostRows));
      grid = tiles * period * CeilDiv(m, period * rows);
      return;
    }
    flipped = n > 8;
    few = flipped ? m : n;
    const int64_t length = flipped ? n : m;
    if (flipped != (flipped ? product.transposed_b : product.transposed_a)) {
      form = kLongColumns;
      grid = CeilDiv(length, 256);
      return;
    }
    form = kLongRows;
    const int64_t words = CeilDiv(k, 8);
    while (lanes < 32 && lanes < words) lanes *= 2;
    if (words >= kThreads && batch * length * lanes / 4 < kBusy) {
      lanes = kThreads;
    }
    rows = 4;
    while (rows > 1 && batch * CeilDiv(length, rows) * lanes < kBusy) rows /= 2;
    grid = CeilDiv(length, rows * (kThreads / lanes));
  }
};

absl::StatusOr<CudaPlan> ThinPlan(const MatrixProduct& product) {
  const BatchedSize& size = product.size;
  if (!HasShortSums(size) && std::min(size.m, size.n) > 8) {
    return absl::InvalidArgumentError(absl::StrCat("a product of ", size.m,
                                                   " x ", size.n, " x ", size.k,
                                                   ", expected a thin one"));
  }
  const ThinForm thin(product);
  CudaPlan plan;
  plan.source = "thin_product.cu";
  plan.function = "thin_product";
  plan.grid_x = static_cast<unsigned>(thin.grid);
  plan.grid_y = static_cast<unsigned>(size.batch);
  plan.block_x = thin.form == ThinForm::kSumsOfFew ? 128 : 256;
  // Columns of the long matrix in its stored layout, or of b.
  const int64_t columns = thin.form == ThinForm::kLongRows ? size.k
                          : thin.form == ThinForm::kLongColumns && !thin.flipped
                              ? size.m
                              : size.n;
  plan.defines = {absl::StrCat("FORM=", thin.form),
                  absl::StrCat("FLIPPED=", thin.flipped ? 1 : 0),
                  absl::StrCat("FEW=", thin.few),
                  absl::StrCat("ALIGNED=", columns % 8 == 0 ? 1 : 0)};
  if (thin.form == ThinForm::kLongRows) {
    plan.defines.push_back(absl::StrCat("LANES=", thin.lanes));
    plan.defines.push_back(absl::StrCat("ROWS=", thin.rows));
  }
  return plan;
}

// Adds how the copy engine sees matrices; nothing where it cannot.
class Maps {
 public:
  Maps(const cuda::Driver& driver, proto::DataType type, int64_t batch,
       bool flat, cuda::CudaArguments* arguments)
      : driver_(driver),
        type_(type),
        batch_(batch),
        flat_(flat),
        arguments_(arguments) {}

  absl::Status Add(void* address, bool unaligned, int64_t rows, int64_t columns,
                   int64_t box_rows) {
    cuda::TensorMap map{};
    const auto box = static_cast<uint32_t>(box_rows);
    absl::Status status;
    if (!unaligned && flat_) {
      status = cuda::EncodeMatrix(driver_, address, batch_ * rows, columns,
                                  type_, box, &map);
    } else if (!unaligned) {
      status = cuda::EncodeMatrices(driver_, address, batch_, rows, columns,
                                    type_, box, &map);
    }
    arguments_->Add(map);
    return status;
  }

 private:
  const cuda::Driver& driver_;
  proto::DataType type_;
  int64_t batch_;
  bool flat_;
  cuda::CudaArguments* arguments_;
};

}  // namespace

std::vector<std::vector<proto::DataType>> MatrixProductCuda::data_types()
    const {
  return HalfTypes();
}

absl::StatusOr<CudaPlan> MatrixProductCuda::Plan(
    const proto::Shape& shape, const proto::Config& config,
    const proto::Hardware& hardware) const {
  OPTRAIL_ASSIGN_OR_RETURN(const cuda::Element element,
                           cuda::ElementOf(shape.data_types(0)));
  const MatrixProduct product = ProductOf(shape);
  const BatchedSize& size = product.size;
  const std::string kernel = cuda::VariantKnob(config, "kernel");
  const bool is_plain = kernel == "mma" || kernel == "thin";
  if (is_plain && size.batch > kMaxBatch) {
    return absl::InvalidArgumentError(
        absl::StrCat(size.batch, " products, expected at most ", kMaxBatch));
  }
  CudaPlan plan;
  if (kernel == "hopper_skinny") {
    plan = SkinnyPlan(size, Unaligned(product, config) & 3, config);
  } else if (kernel == "thin") {
    OPTRAIL_ASSIGN_OR_RETURN(plan, ThinPlan(product));
  } else if (kernel == "mma") {
    plan = MmaProductPlan("matrix_product_mma.cu", "matrix_product_mma", size,
                          VectorOf(product.transposed_a, size.k),
                          VectorOf(product.transposed_b, size.n), config);
  } else {
    plan = HopperProduct(size, config, Unaligned(product, config))
               .Plan("matrix_product.cu", "matrix_product", hardware);
    plan.defines.push_back(absl::StrCat("PADDED=", IsPadded(config) ? 1 : 0));
    if (const Copies copies(product, config); copies.words() > 0) {
      plan.before.function = "product_copy";
      plan.before.block_x = 256;
      plan.before.grid_x = static_cast<unsigned>(CeilDiv(copies.words(), 256));
      plan.workspace_bytes = static_cast<size_t>(
          CeilDiv(static_cast<int64_t>(plan.workspace_bytes), 256) * 256 +
          copies.bytes());
    }
    plan.defines.push_back(absl::StrCat("BATCHED=", size.batch > 1 ? 1 : 0));
    plan.defines.push_back(absl::StrCat("FLAT=", IsFlat(size, config) ? 1 : 0));
  }
  plan.defines.push_back(InputOf(element));
  plan.defines.push_back(absl::StrCat("ELEMENT=", element.code));
  plan.defines.push_back(
      absl::StrCat("TRANSPOSED_A=", product.transposed_a ? 1 : 0));
  plan.defines.push_back(
      absl::StrCat("TRANSPOSED_B=", product.transposed_b ? 1 : 0));
  plan.defines.push_back(absl::StrCat("BIAS=", product.bias ? 1 : 0));
  if (product.bias) {
    plan.defines.push_back(absl::StrCat("ACTIVATION=", product.activation));
    plan.defines.push_back(absl::StrCat("EVEN_N=", size.n % 2 == 0 ? 1 : 0));
  }
  return plan;
}

absl::Status MatrixProductCuda::Arguments(
    const CudaPlan& plan, const proto::Shape& shape,
    const proto::Config& config, absl::Span<void* const> operands,
    void* workspace, const cuda::Driver& driver,
    cuda::CudaArguments* arguments) const {
  const MatrixProduct product = ProductOf(shape);
  const auto [batch, m, n, k] = product.size;
  const std::string kernel = cuda::VariantKnob(config, "kernel");
  const HopperProduct hopper(product.size, config);
  const bool is_plain = kernel == "mma" || kernel == "thin";
  if (!is_plain) {
    const bool skinny = kernel == "hopper_skinny";
    const int unaligned = Unaligned(product, config);
    const Copies copies(product, config);
    void* const from_a = copies.A(plan, operands, workspace);
    void* const from_b = copies.B(plan, operands, workspace);
    // Columns of what is loaded.
    const int64_t of_a = StoredA(product).padded();
    const int64_t of_b = StoredB(product).padded();
    Maps maps(driver, shape.data_types(0), batch, IsFlat(product.size, config),
              arguments);
    OPTRAIL_RETURN_IF_ERROR(
        product.transposed_a
            ? maps.Add(from_a, unaligned & 1, k, of_a, kTileK)
            : maps.Add(from_a, unaligned & 1, m, of_a,
                       skinny ? hopper.tile_m() : hopper.BoxRowsOfA()));
    OPTRAIL_RETURN_IF_ERROR(
        product.transposed_b
            ? maps.Add(from_b, unaligned & 2, n, of_b, 64)
            : maps.Add(from_b, unaligned & 2, k, of_b, hopper.BoxRowsOfB()));
    if (!skinny) {
      OPTRAIL_RETURN_IF_ERROR(
          maps.Add(operands.back(), unaligned & 4, m, n, hopper.BoxRowsOfC()));
    }
  }
  arguments->Add(operands[0]);
  arguments->Add(operands[1]);
  arguments->Add(product.bias ? operands[2] : nullptr);
  arguments->Add(operands.back());
  const auto add = [&](int64_t value) {
    arguments->Add(static_cast<int>(value));
  };
  if (!is_plain && kernel != "hopper_skinny") add(batch);
  for (const int64_t value : {m, n, k}) add(value);
  if (kernel == "hopper_skinny") {
    add(Knob(config, "stages"));
  } else if (kernel == "mma") {
    add(Knob(config, "group"));
  } else if (kernel == "thin") {
    const ThinForm thin(product);
    for (const int64_t value : {batch, thin.period, thin.rows, thin.side}) {
      add(value);
    }
  } else {
    hopper.AddWalk(workspace, arguments);
  }
  return absl::OkStatus();
}

void MatrixProductCuda::ArgumentsBefore(const CudaPlan& plan,
                                        const proto::Shape& shape,
                                        const proto::Config& config,
                                        absl::Span<void* const> operands,
                                        void* workspace,
                                        cuda::CudaArguments* arguments) const {
  Copies(ProductOf(shape), config).Add(plan, operands, workspace, arguments);
}

}  // namespace optrail::ops
