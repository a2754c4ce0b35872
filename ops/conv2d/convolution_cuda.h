#ifndef OPTRAIL_OPS_CONV2D_CONVOLUTION_CUDA_H_
#define OPTRAIL_OPS_CONV2D_CONVOLUTION_CUDA_H_

// The CUDA kernels of conv2d and its fused form, products whose A is gathered
// while it is read: which of them a config stands for, what to compile
// and how to launch it.
//
//   mma           mma.sync, any shape, from sm_80    convolution_mma.cu
//   hopper        wgmma fed by the bulk copy engine  convolution_hopper.cu
//                 from copies, if need be            convolution_copy.cuh
//   few_channels  mma.sync, images of colours        ..._few_channels.cu

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "ops/conv2d/convolution.h"
#include "ops/lib/cuda_frame.h"
#include "ops/product/cuda/product_cuda.h"

namespace optrail::ops {

class ConvolutionCuda : public cuda::CudaBackend {
 public:
  // `fused`: as ConvolutionOperator.
  explicit ConvolutionCuda(bool fused) : fused_(fused) {}

  std::vector<std::vector<proto::DataType>> data_types() const override {
    return HalfTypes();
  }

  absl::StatusOr<cuda::CudaPlan> Plan(
      const proto::Shape& shape, const proto::Config& config,
      const proto::Hardware& hardware) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const ConvolutionSize s, ConvolutionSizeOf(shape));
    OPTRAIL_ASSIGN_OR_RETURN(const cuda::Element element,
                             cuda::ElementOf(shape.data_types(0)));
    const std::string kernel = cuda::VariantKnob(config, "kernel");
    cuda::CudaPlan plan =
        kernel == "few_channels" ? FewChannelsPlan(s, config)
        : kernel == "hopper"
            ? HopperPlan(s, config, hardware)
            : MmaProductPlan("convolution_mma.cu", "convolution_mma", SizeOf(s),
                             cuda::VectorOf(s.c, 2), cuda::VectorOf(s.k, 2),
                             config);
    plan.defines.push_back(absl::StrCat("ELEMENT=", element.code));
    plan.defines.push_back(InputOf(element));
    AddDefines(s, &plan.defines);
    return plan;
  }

  absl::Status Arguments(const cuda::CudaPlan& plan, const proto::Shape& shape,
                         const proto::Config& config,
                         absl::Span<void* const> operands, void* workspace,
                         const cuda::Driver& driver,
                         cuda::CudaArguments* arguments) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const ConvolutionSize s, ConvolutionSizeOf(shape));
    const std::string kernel = cuda::VariantKnob(config, "kernel");
    const bool is_hopper = kernel == "hopper";
    if (is_hopper) {
      OPTRAIL_RETURN_IF_ERROR(
          AddMaps(s, shape.data_types(0), config,
                  Loaded(s, config, plan, operands, workspace), operands.back(),
                  driver, arguments));
    } else {
      arguments->Add(operands[0]);
    }
    arguments->Add(operands[1]);
    arguments->Add(fused_ ? operands[2] : nullptr);
    arguments->Add(fused_ ? operands[3] : nullptr);
    arguments->Add(operands.back());
    if (kernel == "few_channels") return absl::OkStatus();
    arguments->Add(static_cast<int>(s.rows()));
    if (is_hopper) {
      HopperProduct(SizeOf(s), config).AddWalk(workspace, arguments);
    } else {
      arguments->Add(static_cast<int>(cuda::Knob(config, "group")));
    }
    return absl::OkStatus();
  }

  void ArgumentsBefore(const cuda::CudaPlan& plan, const proto::Shape& shape,
                       const proto::Config& config,
                       absl::Span<void* const> operands, void* workspace,
                       cuda::CudaArguments* arguments) const override {
    const absl::StatusOr<ConvolutionSize> s = ConvolutionSizeOf(shape);
    OPTRAIL_CHECK(s.ok()) << s.status();  // Plan has read it
    const LoadedOperands to = Loaded(*s, config, plan, operands, workspace);
    arguments->Add(operands[0]);
    arguments->Add(operands[1]);
    arguments->Add(static_cast<unsigned>(s->n * s->h));
    arguments->Add(to.x);
    arguments->Add(to.weights);
  }

 private:
  // The knob `layout`, as the macro LAYOUT of convolution_copy.cuh.
  enum Layout { kAsIs, kFilters, kChannels, kLines };

  static Layout LayoutOf(const proto::Config& config) {
    for (const proto::KnobValue& value : config.set()) {
      if (value.knob() != "layout") continue;
      if (value.variant() == "filters") return kFilters;
      if (value.variant() == "channels") return kChannels;
      if (value.variant() == "lines") return kLines;
    }
    return kAsIs;
  }

  // Copies of x and of the filters in the workspace, which end it.
  struct Copies {
    int64_t pixel_words = 0, filter_words = 0;  // of 16 bytes

    Copies(const ConvolutionSize& s, Layout layout) {
      if (layout == kLines) {
        pixel_words = s.n * s.h * s.q * CeilDiv(s.s * s.c, 8);
      } else if (layout == kChannels) {
        pixel_words = s.n * s.h * s.w * CeilDiv(s.c, 8);
      }
      if (layout != kAsIs && s.k % 8 != 0) {
        filter_words = s.depth() * CeilDiv(s.k, 8);
      }
    }
    // The engine reads matrices that begin at multiples of this.
    static constexpr int64_t kAlign = 256;
    int64_t pixel_bytes() const {
      return CeilDiv(pixel_words * 16, kAlign) * kAlign;
    }
    int64_t bytes() const { return pixel_bytes() + filter_words * 16; }
  };

  // The operands that the engine loads, or their copies.
  struct LoadedOperands {
    void *x, *weights;
  };
  static LoadedOperands Loaded(const ConvolutionSize& s,
                               const proto::Config& config,
                               const cuda::CudaPlan& plan,
                               absl::Span<void* const> operands,
                               void* workspace) {
    const Copies copies(s, LayoutOf(config));
    char* const begin =
        static_cast<char*>(workspace) + plan.workspace_bytes - copies.bytes();
    return {
        copies.pixel_words > 0 ? begin : operands[0],
        copies.filter_words > 0 ? begin + copies.pixel_bytes() : operands[1]};
  }

  static cuda::CudaPlan HopperPlan(const ConvolutionSize& s,
                                   const proto::Config& config,
                                   const proto::Hardware& hardware) {
    const Layout layout = LayoutOf(config);
    cuda::CudaPlan plan =
        HopperProduct(SizeOf(s), config, Unaligned(s, layout))
            .Plan("convolution_hopper.cu", "convolution", hardware);
    plan.defines.push_back(absl::StrCat("LAYOUT=", layout));
    const Copies copies(s, layout);
    if (copies.bytes() == 0) return plan;
    plan.before.function = "convolution_copy";
    plan.before.block_x = 256;
    plan.before.grid_x = static_cast<unsigned>(
        CeilDiv(copies.pixel_words + copies.filter_words, 256));
    plan.workspace_bytes = static_cast<size_t>(
        CeilDiv(static_cast<int64_t>(plan.workspace_bytes), Copies::kAlign) *
            Copies::kAlign +
        copies.bytes());
    return plan;
  }

  // Rows of the product are output pixels, its columns are filters.
  static BatchedSize SizeOf(const ConvolutionSize& s) {
    return {1, s.rows(), s.k, s.depth()};
  }

  // Rows of filters and of y that are no multiples of 16 bytes, as the macro
  // UNALIGNED of hopper_product.cuh.
  static int Unaligned(const ConvolutionSize& s, Layout layout) {
    return s.k % 8 == 0 ? 0 : layout == kAsIs ? 6 : 4;
  }

  static absl::Status AddMaps(const ConvolutionSize& s, proto::DataType type,
                              const proto::Config& config,
                              const LoadedOperands& from, void* y,
                              const cuda::Driver& driver,
                              cuda::CudaArguments* arguments) {
    const Layout layout = LayoutOf(config);
    const int unaligned = Unaligned(s, layout);
    cuda::Images images = {s.n, s.h,      s.w,      s.c,       s.r,
                           s.s, s.stride, s.stride, s.padding, s.padding};
    int64_t places = s.r * s.s, channels = s.c;
    if (layout == kLines) {
      // A column of y has all channels under a line of the filter.
      places = s.r, channels = s.s * s.c;
      images.w = s.q, images.s = 1, images.stride_w = 1, images.padding_w = 0;
    }
    images.c = layout == kAsIs ? channels : CeilDiv(channels, 8) * 8;
    cuda::TensorMap map_x{}, map_weights{}, map_y{};
    OPTRAIL_RETURN_IF_ERROR(cuda::EncodeImages(
        driver, from.x, images, type,
        static_cast<uint32_t>(cuda::Knob(config, "tile_m")), &map_x));
    if ((unaligned & 2) == 0) {
      OPTRAIL_RETURN_IF_ERROR(cuda::EncodeMatrices(
          driver, from.weights, places, channels, CeilDiv(s.k, 8) * 8, type,
          HopperProduct::kTileK, &map_weights));
    }
    if ((unaligned & 4) == 0) {
      OPTRAIL_RETURN_IF_ERROR(cuda::EncodeMatrix(driver, y, s.rows(), s.k, type,
                                                 /*box_rows=*/64, &map_y));
    }
    for (const cuda::TensorMap& map : {map_x, map_weights, map_y})
      arguments->Add(map);
    return absl::OkStatus();
  }

  static cuda::CudaPlan FewChannelsPlan(const ConvolutionSize& s,
                                        const proto::Config& config) {
    // The kernel has the same constants.
    constexpr int64_t kFilters = 64, kPitch = kFilters + 8;
    const int64_t lines = cuda::Knob(config, "lines");
    const int64_t warps = cuda::Knob(config, "warps");
    const int64_t run = CeilDiv(s.s * s.c, 2) * 2;
    const int64_t across = CeilDiv(std::min<int64_t>(s.q, 128), 16) * 16;
    const int64_t pitch_x = (across - 1) * s.stride * s.c / 2 * 2 + 2 + run;
    cuda::CudaPlan plan;
    plan.source = "convolution_few_channels.cu";
    plan.function = "convolution_few_channels";
    plan.defines = {absl::StrCat("WARPS=", warps),
                    absl::StrCat("LINES=", lines)};
    plan.grid_x =
        static_cast<unsigned>(CeilDiv(s.q, across) * CeilDiv(s.p, lines) *
                              CeilDiv(s.k, kFilters) * s.n);
    plan.block_x = static_cast<unsigned>(32 * warps);
    plan.dynamic_shared_bytes = static_cast<unsigned>(
        2 * ((CeilDiv(s.r * run, 16) + warps) * 16 * kPitch +
             ((lines - 1) * s.stride + s.r) * pitch_x));
    return plan;
  }

  void AddDefines(const ConvolutionSize& s,
                  std::vector<std::string>* defines) const {
    for (const auto& [name, value] :
         std::vector<std::pair<const char*, int64_t>>{{"H", s.h},
                                                      {"W", s.w},
                                                      {"C", s.c},
                                                      {"K", s.k},
                                                      {"R", s.r},
                                                      {"S", s.s},
                                                      {"P", s.p},
                                                      {"Q", s.q},
                                                      {"STRIDE", s.stride},
                                                      {"PADDING", s.padding},
                                                      {"FUSED", fused_}}) {
      defines->push_back(absl::StrCat(name, "=", value));
    }
  }

  const bool fused_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_CONVOLUTION_CUDA_H_
