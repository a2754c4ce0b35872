#ifndef OPTRAIL_OPS_VENDOR_CUDNN_CUDNN_H_
#define OPTRAIL_OPS_VENDOR_CUDNN_CUDNN_H_

// NVIDIA's cuDNN as a backend of operators, loaded at run time: an operator is
// a graph of tensors and operations, for which the library's heuristics propose
// plans, among which a knob chooses ("plan", cudnn.space.textproto).
//
//   class Conv2dCudnn : public CudnnBackend {
//    protected:
//     absl::StatusOr<CudnnGraph> GraphOf(
//         const proto::Shape& shape) const override;
//   };
//   OPTRAIL_REGISTER_BACKEND("conv2d", Conv2dCudnn)
//
// Products of floats are computed as such, without TF32. Sums of 16-bit
// products are f32, as everybody's here; plans that may round parts of them on
// the way are there for the asking ("sums"), and are measured only where their
// results are right all the same.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/core/library_backend.h"
#include "ops/device/cuda/device.h"

namespace optrail::ops {

// The operations stand in the order in which they are computed.
class CudnnGraph {
 public:
  // In the library's order, whatever lies in memory: images are [n, c, h, w]
  // and filters [k, c, r, s]. Strides in elements.
  struct Layout {
    std::vector<int64_t> dims;
    std::vector<int64_t> strides;
  };
  using Tensor = int;

  // Operand number `operand` of calls.
  Tensor Operand(int operand, proto::DataType type, const Layout& layout);
  // The same, where the operand is a matrix of so many rows and columns and the
  // library reads its transpose: a copy, made by Invocation::Pack().
  Tensor TurnedOperand(int operand, proto::DataType type, const Layout& layout,
                       int64_t rows, int64_t columns);
  // The same number for all elements of a tensor of that rank.
  Tensor Number(float value, int rank);
  Tensor Number(int32_t value, int rank);
  // Between two operations, where nothing need be in memory.
  Tensor Between(const Layout& layout, proto::DataType type = proto::F32);

  // y = x * w, padded alike on all sides.
  void Convolution(Tensor x, Tensor w, Tensor y, int64_t stride,
                   int64_t padding);
  // c = a * b of the last two dimensions; of the others b may have fewer, which
  // then serve several of a.
  void Product(Tensor a, Tensor b, Tensor c);
  // Over the last dimension, of which y has one.
  enum class Reduction { kMax, kSum };
  void Reduce(Reduction reduction, Tensor x, Tensor y);
  // y = f(inputs) element by element, computed as y's type, 16 bits as f32;
  // dimensions of 1 are repeated. kAtLeast: whether the first is at least the
  // second; kSelect: the first where the third holds, else the second.
  enum class Function {
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kExp,
    kLog,
    kRelu,
    kAtLeast,
    kSelect,
  };
  void Elementwise(Function function, const std::vector<Tensor>& inputs,
                   Tensor y);
  // The index along `dim` of every element; x is of the same shape.
  void Index(int dim, Tensor x, Tensor y);
  // The norms of lib/norm.h over all dimensions but the first, centred or not.
  // kNone: a tensor that the norm does not have or nobody asks for.
  static constexpr Tensor kNone = -1;
  struct Norm {
    bool centred = true;
    Tensor x = kNone, gamma = kNone, beta = kNone, epsilon = kNone;
    Tensor y = kNone, mean = kNone, rstd = kNone;
    Tensor dy = kNone, dx = kNone, dgamma = kNone, dbeta = kNone;
  };
  void NormForward(const Norm& norm);
  void NormBackward(const Norm& norm);

 private:
  friend class CudnnInvocation;

  // A descriptor of the library: its kind and what is set in it.
  struct Attribute {
    int name = 0;
    int type = 0;
    int64_t count = 0;
    std::string values;      // as they lie in memory
    std::vector<int> nodes;  // in place of values: other descriptors
  };
  struct Node {
    int kind = 0;
    std::vector<Attribute> attributes;
    proto::DataType type = proto::F32;  // of a tensor
  };
  // A tensor that calls bind to an address; `rows` is 0 where it is the
  // operand's own.
  struct Bound {
    int64_t id = 0;
    int operand = 0;
    int64_t rows = 0, columns = 0;
    int64_t element_bytes = 0;
    std::string number;  // in place of an operand, in its stored layout
  };

  template <typename T>
  static Attribute Values(int name, int type, const std::vector<T>& values);
  static Attribute Nodes(int name, std::vector<int> nodes);
  static std::vector<Attribute> Existing(
      const std::vector<std::pair<int, Tensor>>& tensors);
  int Add(int kind, std::vector<Attribute> attributes);
  void AddOperation(int kind, std::vector<Attribute> attributes);
  Tensor AddTensor(proto::DataType type, const Layout& layout, int where);
  void AddElementwise(int mode, const std::vector<Tensor>& inputs, Tensor y,
                      std::vector<Attribute> more);
  Tensor AddNumber(proto::DataType type, int rank, std::string number);

  std::vector<Node> nodes_;
  std::vector<int> operations_;
  std::vector<Bound> bound_;
};

class CudnnBackend : public BackendFor<cuda::CudaDevice, LibraryBackend> {
 public:
  std::string name() const override { return "cudnn"; }
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::F16}, {proto::BF16}};
  }

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> LoadOn(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, cuda::CudaDevice& device) const override;
  absl::StatusOr<std::string> Version() const override;

  // Unimplemented for what the library cannot compute.
  virtual absl::StatusOr<CudnnGraph> GraphOf(
      const proto::Shape& shape) const = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_VENDOR_CUDNN_CUDNN_H_
