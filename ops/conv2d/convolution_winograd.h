#ifndef OPTRAIL_OPS_CONV2D_CONVOLUTION_WINOGRAD_H_
#define OPTRAIL_OPS_CONV2D_CONVOLUTION_WINOGRAD_H_

// Convolutions by Winograd's algorithm (winograd.h): filters of 3 x 3,
// stride 1. A task transforms some lines of tiles, multiplies them with the
// transformed filters, a product for each point of a tile, and transforms back.
//
//   const auto plan = ConvolutionWinograd<float>::Plan(
//       size, blocking, task_rows, device, layout);
//   plan.TransformFilters(call, weights, u);  // filter_floats()
//   plan.Run(call, x, u, y, epilogue);

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "ops/conv2d/convolution.h"
#include "ops/conv2d/pixels.h"
#include "ops/conv2d/winograd.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"
#include "ops/product/cpu/blocked_product.h"
#include "ops/product/cpu/tasks.h"

namespace optrail::ops {

template <class T>
class ConvolutionWinograd {
 public:
  static ConvolutionWinograd Plan(const ConvolutionSize& size,
                                  const Blocking& blocking, int64_t task_rows,
                                  CpuDevice& device, WorkspaceLayout& layout) {
    ConvolutionWinograd plan;
    plan.size_ = size;
    // Lines of tiles, for all filters.
    const int64_t line = plan.columns() * kOutputs * kOutputs;
    // Products of sixteen points make four outputs of a tile.
    const int64_t steps = size.c * kPoints / (kOutputs * kOutputs);
    plan.task_lines_ =
        ShareOut(size.n, {plan.lines() * line, line, task_rows / line * line},
                 {size.k, size.k, size.k}, steps, device.threads())
            .rows /
        line;
    const int64_t tiles = plan.task_lines_ * plan.columns();
    plan.product_ = BlockedProduct(blocking, {tiles, size.k, size.c});
    plan.inputs_at_ = WholeLines(plan.product_.workspace_floats());
    plan.products_at_ = plan.inputs_at_ + WholeLines(kPoints * tiles * size.c);
    plan.outside_at_ = plan.products_at_ + WholeLines(kPoints * tiles * size.k);
    plan.nowhere_at_ = plan.outside_at_ + WholeLines(size.c);
    plan.pixels_at_ = plan.nowhere_at_ + WholeLines(size.k);
    const int64_t lines = plan.task_lines_ * kOutputs;
    plan.outputs_at_ =
        plan.pixels_at_ +
        (kWidens ? WholeLines((lines + 2) * size.w * size.c) : 0);
    plan.workspaces_ = Workspaces(
        layout, std::min<int64_t>(device.threads(), plan.count()),
        plan.outputs_at_ + (kWidens ? WholeLines(lines * size.q * size.k) : 0));
    return plan;
  }

  int64_t filter_floats() const { return kPoints * filters(); }

  void TransformFilters(const Call& call, const T* weights, float* u) const {
    const WinogradTransforms& winograd = FindWinograd();
    const int64_t places = size_.r * size_.s;
    std::vector<float> widened(kWidens ? places * filters() : 0);
    ForBlocks(call, filters(), kFiltersAtOnce,
              [&](int64_t begin, int64_t count) {
                const float* from;
                if constexpr (kWidens) {
                  Widen(weights + begin, places, count, filters(),
                        widened.data() + begin, filters());
                  from = widened.data();
                } else {
                  from = weights;
                }
                winograd.filters(from, filters(), begin, begin + count, u);
              });
  }

  // `u`: filters, transformed.
  void Run(const Call& call, const T* x, const float* u, T* y,
           const Epilogue& epilogue) const {
    const WinogradTransforms& winograd = FindWinograd();
    Workspaces::Shared shared(workspaces_, call);
    call.ParallelFor(count(), [&](int64_t task) {
      const ConvolutionSize& s = size_;
      const int64_t first = task % line_parts() * task_lines_;
      const int64_t image = task / line_parts();
      const int64_t tiles = std::min(task_lines_, lines() - first) * columns();
      const Workspaces::Lease lease(shared);
      float* const inputs = lease.data() + inputs_at_;
      float* const products = lease.data() + products_at_;
      float* const outside = lease.data() + outside_at_;
      std::fill_n(outside, s.c, 0.0f);
      // Lines of pixels and outputs, which begin with those that are there.
      const int64_t out_line = first * kOutputs;
      const int64_t out_lines =
          std::min(task_lines_ * kOutputs, s.p - out_line);
      const int64_t width = s.w * s.c;
      const int64_t first_line =
          std::clamp<int64_t>(out_line - s.padding, 0, s.h);
      const T* const in = x + (image * s.h + first_line) * width;
      T* const out = y + (image * s.p + out_line) * s.q * s.k;
      const float* from;
      float* to;
      if constexpr (kWidens) {
        const int64_t end = std::clamp(
            out_line - s.padding + out_lines + s.r - 1, first_line, s.h);
        CopyValues(in, (end - first_line) * width, lease.data() + pixels_at_);
        from = lease.data() + pixels_at_;
        to = lease.data() + outputs_at_;
      } else {
        from = in;
        to = out;
      }
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t line = (first + tile / columns()) * kOutputs - s.padding;
        const int64_t column = tile % columns() * kOutputs - s.padding;
        const float* pixels[kPoints];
        for (int64_t e = 0; e < kPoints; ++e) {
          const int64_t i = line + e / kSide, j = column + e % kSide;
          const bool inside = i >= 0 && i < s.h && j >= 0 && j < s.w;
          pixels[e] =
              inside ? from + (i - first_line) * width + j * s.c : outside;
        }
        winograd.input(pixels, s.c, tiles * s.c, inputs + tile * s.c);
      }
      for (int64_t e = 0; e < kPoints; ++e) {
        Result sums;
        sums.data = products + e * tiles * s.k;
        sums.stride = s.k;
        product_.Multiply({tiles, s.k, s.c}, {{inputs + e * tiles * s.c, s.c}},
                          {{u + e * filters(), s.k}}, sums, lease.data());
      }
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t line = (first + tile / columns()) * kOutputs;
        const int64_t column = tile % columns() * kOutputs;
        float* outputs[kOutputs * kOutputs];
        for (int64_t e = 0; e < kOutputs * kOutputs; ++e) {
          const int64_t i = line + e / kOutputs, j = column + e % kOutputs;
          const bool inside = i < s.p && j < s.q;
          outputs[e] = inside ? to + ((i - out_line) * s.q + j) * s.k
                              : lease.data() + nowhere_at_;
        }
        winograd.output(products + tile * s.k, tiles * s.k, s.k, outputs);
      }
      ScaleShiftActivate(epilogue, to, out_lines * s.q, s.k, s.k);
      if constexpr (kWidens) {
        RoundToBf16(to, out_lines * s.q, s.k, s.k, out, s.k);
      }
    });
  }

 private:
  static constexpr bool kWidens = !std::is_same_v<T, float>;
  static constexpr int64_t kOutputs = WinogradTransforms::kOutputs;
  static constexpr int64_t kSide = WinogradTransforms::kSide;
  static constexpr int64_t kPoints = WinogradTransforms::kPoints;
  static constexpr int64_t kFiltersAtOnce = 1024;

  int64_t filters() const { return size_.c * size_.k; }
  // Tiles down and across an image.
  int64_t lines() const { return CeilDiv(size_.p, kOutputs); }
  int64_t columns() const { return CeilDiv(size_.q, kOutputs); }
  int64_t line_parts() const { return CeilDiv(lines(), task_lines_); }
  int64_t count() const { return size_.n * line_parts(); }

  ConvolutionSize size_ = {};
  BlockedProduct product_;
  int64_t task_lines_ = 0;  // of tiles, at most
  // Where the parts of a workspace begin: transformed pixels, products, zeros
  // for pixels outside, room for outputs that do not exist, and, where they are
  // widened, pixels and outputs.
  int64_t inputs_at_ = 0;
  int64_t products_at_ = 0;
  int64_t outside_at_ = 0;
  int64_t nowhere_at_ = 0;
  int64_t pixels_at_ = 0;
  int64_t outputs_at_ = 0;
  Workspaces workspaces_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_CONVOLUTION_WINOGRAD_H_
