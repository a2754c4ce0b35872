#ifndef OPTRAIL_OPS_CONV2D_CONVOLUTION_CPU_H_
#define OPTRAIL_OPS_CONV2D_CONVOLUTION_CPU_H_

// The CPU kernel that conv2d and its fused forms share: an implicit matrix
// product, whose A has the pixels under the filter for an output pixel in each
// row and never exists as a whole. A task computes some output
// pixels and finishes them while they are in registers or cache. Their rows are
// gathered into a workspace (pixels.h) or read where they are stored
// (convolution_in_place.h); filters of 3 x 3 may go by Winograd's algorithm
// (convolution_winograd.h). What is outside of the image is left out, so that a
// filter that is not finite makes no NaN of it, or copied as a border of zeros.
// Filters are packed before calls, as a layer would keep them. Pixels and
// filters of bfloat16 are multiplied in pairs where the machine has
// instructions for it that pay, and converted to float as they are copied
// elsewhere; sums are rounded once.
//
//   class Conv2dCpu : public ConvolutionCpu<Conv2dKnobs, /*kFused=*/false> {};

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/conv2d/convolution.h"
#include "ops/conv2d/convolution_in_place.h"
#include "ops/conv2d/convolution_winograd.h"
#include "ops/conv2d/pixels.h"
#include "ops/lib/cpu_frame.h"
#include "ops/product/cpu/product.h"

namespace optrail::ops {

template <class Knobs, bool kFused>
class ConvolutionCpu : public KnobKernel<Knobs> {
 public:
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::BF16}};
  }

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const Knobs& knobs,
      CpuDevice& device) const override {
    return shape.data_types(0) == proto::BF16
               ? BindType<uint16_t>(shape, knobs, device)
               : BindType<float>(shape, knobs, device);
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const Knobs& knobs) const override {
    return {{"w", knobs.mr},
            {"w", knobs.task_rows},
            {"k", knobs.nr_vectors * TileLanes()},
            {"k", knobs.task_columns},
            {"c", knobs.kc}};
  }

 private:
  // The operands of one call; scale and shift are always floats.
  template <class T>
  struct Operands {
    explicit Operands(const Call& call)
        : x(static_cast<const T*>(call.operands[0])),
          weights(static_cast<const T*>(call.operands[1])),
          y(static_cast<T*>(call.operands[kFused ? 4 : 2])) {
      if (!kFused) return;
      epilogue.scale = static_cast<const float*>(call.operands[2]);
      epilogue.shift = static_cast<const float*>(call.operands[3]);
      epilogue.activation = Activation::kRelu;
    }

    const T* x;
    const T* weights;
    T* y;
    Epilogue epilogue;
  };

  template <class T>
  static absl::StatusOr<std::unique_ptr<Invocation>> BindType(
      const proto::Shape& shape, const Knobs& knobs, CpuDevice& device) {
    OPTRAIL_ASSIGN_OR_RETURN(const ConvolutionSize size,
                             ConvolutionSizeOf(shape));
    WorkspaceLayout layout;
    if (knobs.pixels == Knobs::Pixels::kInPlace && !size.is_product()) {
      typename ConvolutionInPlace<T>::Cut cut;
      cut.pixels = knobs.mr;
      cut.vectors = knobs.nr_vectors;
      cut.panels = knobs.n_tiles;
      cut.steps = knobs.kc;
      cut.task_rows = knobs.task_rows;
      cut.task_columns = knobs.task_columns;
      OPTRAIL_ASSIGN_OR_RETURN(const auto plan, ConvolutionInPlace<T>::Plan(
                                                    size, cut, device, layout));
      return MakePackingInvocation(
          layout, plan.filter_floats(),
          [=](const Call& call, float* to) {
            plan.PackFilters(Operands<T>(call).weights, to);
          },
          [=](const Call& call, const float* panels) {
            const Operands<T> all(call);
            plan.Run(call, all.x, panels, all.y, all.epilogue);
          });
    }
    OPTRAIL_ASSIGN_OR_RETURN(
        Blocking blocking,
        BlockingOf(knobs, knobs.pixels == Knobs::Pixels::kWinograd
                              ? size.c
                              : size.depth()));
    blocking.pack_b = false;
    if (knobs.pixels == Knobs::Pixels::kWinograd) {
      if (size.r != 3 || size.s != 3 || size.stride != 1) {
        return absl::InvalidArgumentError(
            "pixels=winograd: expected filters of 3x3 with stride 1");
      }
      const auto plan = ConvolutionWinograd<T>::Plan(
          size, blocking, knobs.task_rows, device, layout);
      return MakePackingInvocation(
          layout, plan.filter_floats(),
          [=](const Call& call, float* to) {
            plan.TransformFilters(call, Operands<T>(call).weights, to);
          },
          [=](const Call& call, const float* filters) {
            const Operands<T> all(call);
            plan.Run(call, all.x, filters, all.y, all.epilogue);
          });
    }
    ProductSpec spec;
    spec.size = {size.rows(), size.k, size.depth()};
    spec.blocking = blocking;
    spec.task_rows = knobs.task_rows;
    spec.task_columns = knobs.task_columns;
    spec.may_pack_b = true;
    spec.gathers_a = !size.is_product();
    return BindProduct<T>(size, spec, device);
  }

  // Pixels gathered, or a product of what is stored.
  template <class T>
  static std::unique_ptr<Invocation> BindProduct(const ConvolutionSize& size,
                                                 const ProductSpec& spec,
                                                 CpuDevice& device) {
    WorkspaceLayout layout;
    const auto product = Product<T>::Plan(spec, device, layout);
    return MakePackingInvocation(
        layout, product.packs_b() ? product.packed_floats() : 0,
        [=](const Call& call, float* to) {
          product.PackB(Operands<T>(call).weights, to);
        },
        [=](const Call& call, const float* filters) {
          const Operands<T> all(call);
          const PixelRows<T> pixels(size, all.x);
          typename Product<T>::Right right;
          right.data = all.weights;
          if (product.packs_b()) right.packed = filters;
          product.Run(call, {all.x, size.is_product() ? nullptr : &pixels},
                      right, all.y, all.epilogue);
        });
  }
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_CONVOLUTION_CPU_H_
