#include "ops/vendor/onednn/onednn.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ops/core/cpu_device.h"
#include "ops/core/library_backend.h"

#ifdef OPTRAIL_ONEDNN_HEADERS
#include <oneapi/dnnl/dnnl.h>
#if DNNL_VERSION_MAJOR == 2
#define OPTRAIL_HAS_ONEDNN 1
#endif
#endif

namespace optrail::ops {
namespace {

#ifdef OPTRAIL_HAS_ONEDNN

// The functions of the library that are needed here.
#define OPTRAIL_ONEDNN_FUNCTIONS(X)              \
  X(dnnl_convolution_forward_desc_init)          \
  X(dnnl_eltwise_forward_desc_init)              \
  X(dnnl_engine_create)                          \
  X(dnnl_layer_normalization_backward_desc_init) \
  X(dnnl_layer_normalization_forward_desc_init)  \
  X(dnnl_matmul_desc_init)                       \
  X(dnnl_memory_create)                          \
  X(dnnl_memory_desc_get_size)                   \
  X(dnnl_memory_desc_init_by_strides)            \
  X(dnnl_memory_desc_init_by_tag)                \
  X(dnnl_memory_destroy)                         \
  X(dnnl_memory_set_data_handle)                 \
  X(dnnl_post_ops_append_binary)                 \
  X(dnnl_post_ops_append_eltwise)                \
  X(dnnl_post_ops_create)                        \
  X(dnnl_post_ops_destroy)                       \
  X(dnnl_primitive_attr_create)                  \
  X(dnnl_primitive_attr_destroy)                 \
  X(dnnl_primitive_attr_set_post_ops)            \
  X(dnnl_primitive_attr_set_scratchpad_mode)     \
  X(dnnl_primitive_create)                       \
  X(dnnl_primitive_desc_create)                  \
  X(dnnl_primitive_desc_destroy)                 \
  X(dnnl_primitive_desc_query)                   \
  X(dnnl_primitive_desc_query_md)                \
  X(dnnl_primitive_destroy)                      \
  X(dnnl_primitive_execute)                      \
  X(dnnl_reduction_desc_init)                    \
  X(dnnl_reorder_primitive_desc_create)          \
  X(dnnl_softmax_v2_forward_desc_init)           \
  X(dnnl_stream_create)                          \
  X(dnnl_stream_destroy)                         \
  X(dnnl_version)

class OneDnn {
 public:
  // Once per process: it is never unloaded, since its threads live on.
  static const absl::StatusOr<OneDnn>& Get() {
    static const auto* const library = new absl::StatusOr<OneDnn>(Load());
    return *library;
  }

#define OPTRAIL_MEMBER(name) decltype(&::name) name = nullptr;
  OPTRAIL_ONEDNN_FUNCTIONS(OPTRAIL_MEMBER)
#undef OPTRAIL_MEMBER

  // Of OpenMP, with which Debian builds it; per calling thread.
  void SetThreads(int threads) const { set_threads_(threads); }
  dnnl_engine_t engine() const { return engine_; }
  const std::string& version() const { return version_; }

 private:
  static absl::StatusOr<OneDnn> Load() {
    const char* path = getenv("OPTRAIL_ONEDNN");
    if (path == nullptr || *path == '\0') path = "libdnnl.so.2";
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* const why = dlerror();
      return absl::UnavailableError(
          absl::StrCat("unsupported here: ", why != nullptr ? why : path,
                       "; on Debian: apt install libdnnl2"));
    }
    OneDnn dnn;
    const auto missing = [&](const char* name) {
      return absl::UnavailableError(
          absl::StrCat("unsupported here: ", path, " has no function ", name));
    };
#define OPTRAIL_FIND(name)                                                \
  dnn.name = reinterpret_cast<decltype(dnn.name)>(dlsym(library, #name)); \
  if (dnn.name == nullptr) return missing(#name);
    OPTRAIL_ONEDNN_FUNCTIONS(OPTRAIL_FIND)
#undef OPTRAIL_FIND
    dnn.set_threads_ =
        reinterpret_cast<void (*)(int)>(dlsym(library, "omp_set_num_threads"));
    if (dnn.set_threads_ == nullptr) return missing("omp_set_num_threads");
    const dnnl_version_t* const version = dnn.dnnl_version();
    dnn.version_ = absl::StrCat("oneDNN ", version->major, ".", version->minor,
                                ".", version->patch);
    if (version->major != DNNL_VERSION_MAJOR) {
      return absl::UnavailableError(
          absl::StrCat("unsupported here: ", path, " is ", dnn.version_,
                       ", expected major version ", DNNL_VERSION_MAJOR));
    }
    if (dnn.dnnl_engine_create(&dnn.engine_, dnnl_cpu, 0) != dnnl_success) {
      return absl::UnavailableError(absl::StrCat(
          "unsupported here: ", dnn.version_, " makes no engine for CPUs"));
    }
    return dnn;
  }

  void (*set_threads_)(int) = nullptr;
  dnnl_engine_t engine_ = nullptr;
  std::string version_;
};

// Status of a call of the library.
absl::Status Check(dnnl_status_t status, const char* what) {
  if (status == dnnl_success) return absl::OkStatus();
  const std::string text = absl::StrCat("oneDNN: ", what, " gives status ",
                                        static_cast<int>(status));
  if (status == dnnl_unimplemented) return absl::UnimplementedError(text);
  if (status == dnnl_out_of_memory) return absl::ResourceExhaustedError(text);
  return absl::InvalidArgumentError(text);
}

// Dimensions and, in floats, the steps from one index to the next.
struct Layout {
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
};

absl::StatusOr<dnnl_memory_desc_t> Describe(const OneDnn& dnn,
                                            const Layout& layout,
                                            proto::DataType type = proto::F32) {
  dnnl_memory_desc_t desc;
  OPTRAIL_RETURN_IF_ERROR(Check(
      dnn.dnnl_memory_desc_init_by_strides(
          &desc, static_cast<int>(layout.dims.size()), layout.dims.data(),
          type == proto::BF16 ? dnnl_bf16 : dnnl_f32, layout.strides.data()),
      "dnnl_memory_desc_init_by_strides"));
  return desc;
}

// The same in the layout that a primitive likes best.
absl::StatusOr<dnnl_memory_desc_t> OfAnyLayout(const OneDnn& dnn,
                                               const dnnl_memory_desc_t& desc) {
  dnnl_memory_desc_t any;
  OPTRAIL_RETURN_IF_ERROR(Check(
      dnn.dnnl_memory_desc_init_by_tag(&any, desc.ndims, desc.dims,
                                       desc.data_type, dnnl_format_tag_any),
      "dnnl_memory_desc_init_by_tag"));
  return any;
}

Layout Dense(std::vector<int64_t> dims) {
  Layout layout{std::move(dims), {}};
  layout.strides.resize(layout.dims.size());
  int64_t stride = 1;
  for (size_t i = layout.dims.size(); i-- > 0; stride *= layout.dims[i]) {
    layout.strides[i] = stride;
  }
  return layout;
}

// Rounds an offset in a workspace up: the library may want a whole cache line.
int64_t WholeLines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

class Primitive : public Invocation {
 public:
  explicit Primitive(const OneDnn& dnn) : dnn_(dnn) {}
  ~Primitive() override {
    for (Bound* const bound : {&run_, &pack_}) {
      for (const auto& idle : bound->idle) Destroy(idle.load());
      if (bound->primitive != nullptr) {
        dnn_.dnnl_primitive_destroy(bound->primitive);
      }
    }
  }

  // The operand at position `operand` of calls, or kPacked.
  void Bind(int argument, int operand, const dnnl_memory_desc_t& desc) {
    run_.arguments.push_back({argument, operand, desc});
  }

  // The weights, which Pack() brings from `desc` into the layout that the
  // primitive, created by now, has chosen.
  absl::Status BindWeights(int operand, const dnnl_memory_desc_t& desc) {
    Bind(DNNL_ARG_WEIGHTS, kPacked, weights_);
    pack_.arguments = {{DNNL_ARG_FROM, operand, desc},
                       {DNNL_ARG_TO, kPacked, weights_}};
    dnnl_primitive_attr_t attributes = nullptr;
    OPTRAIL_RETURN_IF_ERROR(MakeAttributes(&attributes));
    dnnl_primitive_desc_t reorder = nullptr;
    const absl::Status described =
        Check(dnn_.dnnl_reorder_primitive_desc_create(
                  &reorder, &desc, dnn_.engine(), &weights_, dnn_.engine(),
                  attributes),
              "dnnl_reorder_primitive_desc_create");
    dnn_.dnnl_primitive_attr_destroy(attributes);
    OPTRAIL_RETURN_IF_ERROR(described);
    return CreateFrom(reorder, pack_);
  }

  // The epilogue: with `per_channel` a product with and the addition of an
  // operand of that layout, then the activation.
  struct Epilogue {
    OneDnnActivation activation = OneDnnActivation::kNone;
    const dnnl_memory_desc_t* per_channel = nullptr;
    float scale = 1;
  };
  // `forward`: of which `desc` is the gradient.
  absl::Status Create(const_dnnl_op_desc_t desc, const Epilogue& epilogue,
                      const_dnnl_op_desc_t forward = nullptr);
  absl::Status Create(const_dnnl_op_desc_t desc) {
    return Create(desc, Epilogue());
  }

  int64_t workspace_bytes() const override {
    return std::max(run_.scratch_bytes, pack_.scratch_bytes);
  }
  int64_t packed_bytes() const override {
    if (pack_.primitive == nullptr) return 0;
    return static_cast<int64_t>(dnn_.dnnl_memory_desc_get_size(&weights_));
  }

  absl::Status Pack(const Call& call) const override {
    if (pack_.primitive == nullptr) return absl::OkStatus();
    return Execute(call, pack_);
  }
  absl::Status Run(const Call& call) const override {
    return Execute(call, run_);
  }

 private:
  // In place of an operand's position.
  static constexpr int kPacked = -1;
  static constexpr int kScratch = -2;

  struct Argument {
    int name = 0;
    int operand = 0;
    dnnl_memory_desc_t desc = {};
  };

  // What the library reads addresses from: for one call at a time.
  struct Memories {
    std::vector<dnnl_exec_arg_t> arguments;
    dnnl_stream_t stream = nullptr;
  };

  // A primitive with its arguments, and memories that no call uses at the
  // moment: making them takes longer than short calls.
  struct Bound {
    dnnl_primitive_t primitive = nullptr;
    std::vector<Argument> arguments;
    int64_t scratch_bytes = 0;
    mutable std::array<std::atomic<Memories*>, 8> idle = {};
  };

  // Whose scratch memory is the caller's: that of the library is the thread's
  // that created a primitive.
  absl::Status MakeAttributes(dnnl_primitive_attr_t* attributes) const {
    OPTRAIL_RETURN_IF_ERROR(Check(dnn_.dnnl_primitive_attr_create(attributes),
                                  "dnnl_primitive_attr_create"));
    const absl::Status status =
        Check(dnn_.dnnl_primitive_attr_set_scratchpad_mode(
                  *attributes, dnnl_scratchpad_mode_user),
              "dnnl_primitive_attr_set_scratchpad_mode");
    if (!status.ok()) dnn_.dnnl_primitive_attr_destroy(*attributes);
    return status;
  }

  // Destroys the description.
  absl::Status CreateFrom(dnnl_primitive_desc_t desc, Bound& bound) {
    const absl::Status status =
        Check(dnn_.dnnl_primitive_create(&bound.primitive, desc),
              "dnnl_primitive_create");
    const dnnl_memory_desc_t* const scratch =
        dnn_.dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    if (scratch != nullptr) {
      bound.scratch_bytes =
          static_cast<int64_t>(dnn_.dnnl_memory_desc_get_size(scratch));
    }
    if (bound.scratch_bytes > 0) {
      bound.arguments.push_back({DNNL_ARG_SCRATCHPAD, kScratch, *scratch});
    }
    dnn_.dnnl_primitive_desc_destroy(desc);
    return status;
  }

  absl::StatusOr<Memories*> TakeMemories(const Bound& bound) const {
    for (std::atomic<Memories*>& idle : bound.idle) {
      if (idle.load(std::memory_order_relaxed) == nullptr) continue;
      Memories* const taken = idle.exchange(nullptr, std::memory_order_acquire);
      if (taken != nullptr) return taken;
    }
    auto made = std::make_unique<Memories>();
    absl::Status status =
        Check(dnn_.dnnl_stream_create(&made->stream, dnn_.engine(),
                                      dnnl_stream_default_flags),
              "dnnl_stream_create");
    for (const Argument& argument : bound.arguments) {
      if (!status.ok()) break;
      dnnl_memory_t memory = nullptr;
      status = Check(dnn_.dnnl_memory_create(&memory, &argument.desc,
                                             dnn_.engine(), DNNL_MEMORY_NONE),
                     "dnnl_memory_create");
      if (status.ok()) made->arguments.push_back({argument.name, memory});
    }
    if (status.ok()) return made.release();
    Destroy(made.release());
    return status;
  }

  void GiveMemories(const Bound& bound, Memories* memories) const {
    for (std::atomic<Memories*>& idle : bound.idle) {
      Memories* none = nullptr;
      if (idle.load(std::memory_order_relaxed) == nullptr &&
          idle.compare_exchange_strong(none, memories,
                                       std::memory_order_release,
                                       std::memory_order_relaxed)) {
        return;
      }
    }
    Destroy(memories);
  }

  void Destroy(Memories* memories) const {
    if (memories == nullptr) return;
    for (dnnl_exec_arg_t& argument : memories->arguments) {
      dnn_.dnnl_memory_destroy(argument.memory);
    }
    if (memories->stream != nullptr) {
      dnn_.dnnl_stream_destroy(memories->stream);
    }
    delete memories;
  }

  // What the library refuses now, such as a call without an argument that it
  // wants, it would leave undone.
  absl::Status Execute(const Call& call, const Bound& bound) const {
    OPTRAIL_ASSIGN_OR_RETURN(Memories* const memories, TakeMemories(bound));
    for (size_t i = 0; i < bound.arguments.size(); ++i) {
      const int operand = bound.arguments[i].operand;
      dnn_.dnnl_memory_set_data_handle(memories->arguments[i].memory,
                                       operand == kPacked ? call.packed
                                       : operand == kScratch
                                           ? call.workspace
                                           : call.operands[operand]);
    }
    const dnnl_status_t status = dnn_.dnnl_primitive_execute(
        bound.primitive, memories->stream,
        static_cast<int>(memories->arguments.size()),
        memories->arguments.data());
    GiveMemories(bound, memories);
    return Check(status, "dnnl_primitive_execute");
  }

  const OneDnn& dnn_;
  Bound run_;
  Bound pack_;                       // no primitive: nothing is packed
  dnnl_memory_desc_t weights_ = {};  // as the primitive wants them
};

dnnl_alg_kind_t AlgorithmOf(OneDnnActivation activation) {
  switch (activation) {
    case OneDnnActivation::kRelu:
      return dnnl_eltwise_relu;
    case OneDnnActivation::kGeluErf:
      return dnnl_eltwise_gelu_erf;
    case OneDnnActivation::kGeluTanh:
      return dnnl_eltwise_gelu_tanh;
    case OneDnnActivation::kNone:
      break;
  }
  return dnnl_alg_kind_undef;
}

absl::Status Primitive::Create(const_dnnl_op_desc_t desc,
                               const Epilogue& epilogue,
                               const_dnnl_op_desc_t forward) {
  dnnl_primitive_desc_t hint = nullptr;
  if (forward != nullptr) {
    OPTRAIL_RETURN_IF_ERROR(
        Check(dnn_.dnnl_primitive_desc_create(&hint, forward, nullptr,
                                              dnn_.engine(), nullptr),
              "dnnl_primitive_desc_create"));
  }
  dnnl_primitive_attr_t attributes = nullptr;
  OPTRAIL_RETURN_IF_ERROR(MakeAttributes(&attributes));
  dnnl_post_ops_t post_ops = nullptr;
  dnn_.dnnl_post_ops_create(&post_ops);
  if (epilogue.scale != 1) {
    dnn_.dnnl_post_ops_append_eltwise(post_ops, 1.0f, dnnl_eltwise_linear,
                                      epilogue.scale, 0.0f);
  }
  if (epilogue.per_channel != nullptr) {
    dnn_.dnnl_post_ops_append_binary(post_ops, dnnl_binary_mul,
                                     epilogue.per_channel);
    dnn_.dnnl_post_ops_append_binary(post_ops, dnnl_binary_add,
                                     epilogue.per_channel);
  }
  if (epilogue.activation != OneDnnActivation::kNone) {
    dnn_.dnnl_post_ops_append_eltwise(
        post_ops, 1.0f, AlgorithmOf(epilogue.activation), 0.0f, 0.0f);
  }
  dnn_.dnnl_primitive_attr_set_post_ops(attributes, post_ops);
  dnn_.dnnl_post_ops_destroy(post_ops);
  dnnl_primitive_desc_t primitive_desc = nullptr;
  const absl::Status status =
      Check(dnn_.dnnl_primitive_desc_create(&primitive_desc, desc, attributes,
                                            dnn_.engine(), hint),
            "dnnl_primitive_desc_create");
  if (hint != nullptr) dnn_.dnnl_primitive_desc_destroy(hint);
  dnn_.dnnl_primitive_attr_destroy(attributes);
  OPTRAIL_RETURN_IF_ERROR(status);
  const char* implementation = "";
  dnn_.dnnl_primitive_desc_query(primitive_desc, dnnl_query_impl_info_str, 0,
                                 &implementation);
  // A loop that defines what is right is no offer of a library's: sums down
  // columns take 143 times as long by it as by ours.
  if (absl::StartsWith(implementation, "ref")) {
    dnn_.dnnl_primitive_desc_destroy(primitive_desc);
    return absl::UnimplementedError(absl::StrCat(
        "oneDNN has a reference implementation alone (", implementation, ")"));
  }
  const dnnl_memory_desc_t* const weights = dnn_.dnnl_primitive_desc_query_md(
      primitive_desc, dnnl_query_weights_md, 0);
  if (weights != nullptr) weights_ = *weights;
  return CreateFrom(primitive_desc, run_);
}

#define OPTRAIL_ONEDNN_OR_RETURN(dnn)                     \
  const absl::StatusOr<OneDnn>& dnn##_or = OneDnn::Get(); \
  if (!dnn##_or.ok()) return dnn##_or.status();           \
  const OneDnn& dnn = *dnn##_or

#else

absl::Status WithoutHeaders() {
  return absl::UnavailableError(
      "unsupported here: built without the headers of oneDNN 2; on Debian: "
      "apt install libdnnl-dev, then build anew");
}

#endif  // OPTRAIL_HAS_ONEDNN

#ifdef OPTRAIL_HAS_ONEDNN
// OpenMP knows the number of threads by the thread that calls.
class OnThreads : public Invocation {
 public:
  OnThreads(const OneDnn& dnn, int threads, std::unique_ptr<Invocation> of)
      : dnn_(dnn), threads_(threads), of_(std::move(of)) {}

  int64_t workspace_bytes() const override { return of_->workspace_bytes(); }
  int64_t packed_bytes() const override { return of_->packed_bytes(); }
  absl::Status Pack(const Call& call) const override {
    dnn_.SetThreads(threads_);
    return of_->Pack(call);
  }
  absl::Status Run(const Call& call) const override {
    dnn_.SetThreads(threads_);
    return of_->Run(call);
  }

 private:
  const OneDnn& dnn_;
  const int threads_;
  const std::unique_ptr<const Invocation> of_;
};
#endif

class OneDnnBackend : public BackendFor<CpuDevice, LibraryBackend> {
 public:
  using Make = std::function<OneDnnPrimitive(const proto::Shape&)>;

  OneDnnBackend(Make make, std::vector<std::vector<proto::DataType>> types)
      : make_(std::move(make)), types_(std::move(types)) {}

  std::string name() const override { return "onednn"; }

  std::vector<std::vector<proto::DataType>> data_types() const override {
    return types_;
  }

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> LoadOn(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, CpuDevice& device) const override {
#ifdef OPTRAIL_HAS_ONEDNN
    OPTRAIL_ONEDNN_OR_RETURN(dnn);
    dnn.SetThreads(device.threads());
    OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Invocation> made, make_(shape));
    return std::make_unique<OnThreads>(dnn, device.threads(), std::move(made));
#else
    return WithoutHeaders();
#endif
  }

  absl::StatusOr<std::string> Version() const override {
#ifdef OPTRAIL_HAS_ONEDNN
    OPTRAIL_ONEDNN_OR_RETURN(dnn);
    return dnn.version();
#else
    return WithoutHeaders();
#endif
  }

 private:
  const Make make_;
  const std::vector<std::vector<proto::DataType>> types_;
};

}  // namespace

#ifdef OPTRAIL_HAS_ONEDNN

OneDnnPrimitive OneDnnSoftmax(int64_t rows, int64_t cols,
                              proto::DataType y_type) {
  OPTRAIL_ONEDNN_OR_RETURN(dnn);
  OPTRAIL_ASSIGN_OR_RETURN(const dnnl_memory_desc_t x,
                           Describe(dnn, Dense({rows, cols})));
  OPTRAIL_ASSIGN_OR_RETURN(const dnnl_memory_desc_t y,
                           Describe(dnn, Dense({rows, cols}), y_type));
  dnnl_softmax_v2_desc_t desc;
  OPTRAIL_RETURN_IF_ERROR(
      Check(dnn.dnnl_softmax_v2_forward_desc_init(&desc, dnnl_forward_inference,
                                                  dnnl_softmax_accurate, &x, &y,
                                                  /*softmax_axis=*/1),
            "dnnl_softmax_v2_forward_desc_init"));
  auto primitive = std::make_unique<Primitive>(dnn);
  OPTRAIL_RETURN_IF_ERROR(primitive->Create(&desc));
  primitive->Bind(DNNL_ARG_SRC, 0, x);
  primitive->Bind(DNNL_ARG_DST, 1, y);
  return primitive;
}

OneDnnPrimitive OneDnnElementwise(OneDnnActivation activation, int64_t n) {
  OPTRAIL_ONEDNN_OR_RETURN(dnn);
  OPTRAIL_ASSIGN_OR_RETURN(const dnnl_memory_desc_t data,
                           Describe(dnn, Dense({n})));
  dnnl_eltwise_desc_t desc;
  OPTRAIL_RETURN_IF_ERROR(Check(dnn.dnnl_eltwise_forward_desc_init(
                                    &desc, dnnl_forward_inference,
                                    AlgorithmOf(activation), &data, 0.0f, 0.0f),
                                "dnnl_eltwise_forward_desc_init"));
  auto primitive = std::make_unique<Primitive>(dnn);
  OPTRAIL_RETURN_IF_ERROR(primitive->Create(&desc));
  primitive->Bind(DNNL_ARG_SRC, 0, data);
  primitive->Bind(DNNL_ARG_DST, 1, data);
  return primitive;
}

// The library writes variances where the operator has 1 / their roots.
class LayerNormWithStatistics : public Primitive {
 public:
  LayerNormWithStatistics(const OneDnn& dnn, int64_t rows, double epsilon)
      : Primitive(dnn), rows_(rows), epsilon_(static_cast<float>(epsilon)) {}

  absl::Status Run(const Call& call) const override {
    OPTRAIL_RETURN_IF_ERROR(Primitive::Run(call));
    auto* const rstd = static_cast<float*>(call.operands[5]);
    for (int64_t r = 0; r < rows_; ++r) {
      rstd[r] = 1 / std::sqrt(rstd[r] + epsilon_);
    }
    return absl::OkStatus();
  }

 private:
  const int64_t rows_;
  const float epsilon_;
};

OneDnnPrimitive OneDnnLayerNorm(int64_t rows, int64_t cols, double epsilon,
                                bool statistics) {
  OPTRAIL_ONEDNN_OR_RETURN(dnn);
  OPTRAIL_ASSIGN_OR_RETURN(const dnnl_memory_desc_t data,
                           Describe(dnn, Dense({rows, cols})));
  OPTRAIL_ASSIGN_OR_RETURN(const dnnl_memory_desc_t per_row,
                           Describe(dnn, Dense({rows})));
  OPTRAIL_ASSIGN_OR_RETURN(const dnnl_memory_desc_t scale,
                           Describe(dnn, Dense({cols})));
  dnnl_layer_normalization_desc_t desc;
  OPTRAIL_RETURN_IF_ERROR(Check(
      dnn.dnnl_layer_normalization_forward_desc_init(
          &desc, statistics ? dnnl_forward_training : dnnl_forward_inference,
          &data, &per_row, static_cast<float>(epsilon),
          dnnl_use_scale | dnnl_use_shift),
      "dnnl_layer_normalization_forward_desc_init"));
  std::unique_ptr<Primitive> primitive =
      statistics ? std::make_unique<LayerNormWithStatistics>(dnn, rows, epsilon)
                 : std::make_unique<Primitive>(dnn);
  OPTRAIL_RETURN_IF_ERROR(primitive->Create(&desc));
  primitive->Bind(DNNL_ARG_SRC, 0, data);
  primitive->Bind(DNNL_ARG_SCALE, 1, scale);
  primitive->Bind(DNNL_ARG_SHIFT, 2, scale);
  primitive->Bind(DNNL_ARG_DST, 3, data);
  if (statistics) {
    primitive->Bind(DNNL_ARG_MEAN, 4, per_row);
    primitive->Bind(DNNL_ARG_VARIANCE, 5, per_row);
  }
  return primitive;
}

// The library reads variances where the operator has 1 / their roots. They are
// made with every call, of finite numbers, and the library adds an epsilon of
// 0: with the operator's the variance of a row whose values are nearly equal
// would be the small difference of two numbers, or below 0.
class LayerNormGradients : public Primitive {
 public:
  // Beyond the operands of a call.
  static constexpr int kVariances = 8;

  LayerNormGradients(const OneDnn& dnn, int64_t rows)
      : Primitive(dnn), rows_(rows) {}

  // Variances lie behind what the library wants.
  int64_t workspace_bytes() const override {
    return WholeLines(Primitive::workspace_bytes()) +
           rows_ * static_cast<int64_t>(sizeof(float));
  }

  absl::Status Run(const Call& call) const override {
    const auto* const rstd = static_cast<const float*>(call.operands[4]);
    auto* const variances =
        reinterpret_cast<float*>(static_cast<char*>(call.workspace) +
                                 WholeLines(Primitive::workspace_bytes()));
    for (int64_t r = 0; r < rows_; ++r) {
      const float variance = 1 / (rstd[r] * rstd[r]);
      constexpr float kLargest = std::numeric_limits<float>::max();
      variances[r] = variance > kLargest ? kLargest : variance;  // NaN stays
    }
    void* all[kVariances + 1];
    std::copy(call.operands.begin(), call.operands.end(), all);
    all[kVariances] = variances;
    Call with_variances = call;
    with_variances.operands = all;
    return Primitive::Run(with_variances);
  }

 private:
  const int64_t rows_;
};

OneDnnPrimitive OneDnnLayerNormBackward(int64_t rows, int64_t cols) {
  OPTRAIL_ONEDNN_OR_RETURN(dnn);
  OPTRAIL_ASSIGN_OR_RETURN(const dnnl_memory_desc_t data,
                           Describe(dnn, Dense({rows, cols})));
  OPTRAIL_ASSIGN_OR_RETURN(const dnnl_memory_desc_t per_row,
                           Describe(dnn, Dense({rows})));
  OPTRAIL_ASSIGN_OR_RETURN(const dnnl_memory_desc_t scale,
                           Describe(dnn, Dense({cols})));
  constexpr unsigned kFlags = dnnl_use_scale | dnnl_use_shift;
  dnnl_layer_normalization_desc_t forward;
  OPTRAIL_RETURN_IF_ERROR(
      Check(dnn.dnnl_layer_normalization_forward_desc_init(
                &forward, dnnl_forward_training, &data, &per_row, 0.0f, kFlags),
            "dnnl_layer_normalization_forward_desc_init"));
  dnnl_layer_normalization_desc_t desc;
  OPTRAIL_RETURN_IF_ERROR(
      Check(dnn.dnnl_layer_normalization_backward_desc_init(
                &desc, dnnl_backward, &data, &data, &per_row, 0.0f, kFlags),
            "dnnl_layer_normalization_backward_desc_init"));
  auto primitive = std::make_unique<LayerNormGradients>(dnn, rows);
  OPTRAIL_RETURN_IF_ERROR(
      primitive->Create(&desc, Primitive::Epilogue(), &forward));
  primitive->Bind(DNNL_ARG_DIFF_DST, 0, data);
  primitive->Bind(DNNL_ARG_SRC, 1, data);
  primitive->Bind(DNNL_ARG_SCALE, 2, scale);
  // Beta, which the operator does not have, is asked for and not read.
  primitive->Bind(DNNL_ARG_SHIFT, 2, scale);
  primitive->Bind(DNNL_ARG_MEAN, 3, per_row);
  primitive->Bind(DNNL_ARG_VARIANCE, LayerNormGradients::kVariances, per_row);
  primitive->Bind(DNNL_ARG_DIFF_SRC, 5, data);
  primitive->Bind(DNNL_ARG_DIFF_SCALE, 6, scale);
  primitive->Bind(DNNL_ARG_DIFF_SHIFT, 7, scale);
  return primitive;
}

OneDnnPrimitive OneDnnMatmul(const OneDnnProduct& product) {
  OPTRAIL_ONEDNN_OR_RETURN(dnn);
  const auto& [batch, m, n, k, transposed_a, transposed_b, with_bias,
               activation, type, float_c, scale, packs_b] = product;
  const bool batched = batch > 1;
  auto shaped = [&](std::vector<int64_t> dims) {
    if (batched) dims.insert(dims.begin(), batch);
    return Dense(std::move(dims));
  };
  // Stored with the last two dimensions the other way round.
  auto turned = [](Layout layout, int64_t stored_cols) {
    layout.strides[layout.strides.size() - 2] = 1;
    layout.strides[layout.strides.size() - 1] = stored_cols;
    return layout;
  };
  OPTRAIL_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t a,
      Describe(dnn, transposed_a ? turned(shaped({m, k}), m) : shaped({m, k}),
               type));
  OPTRAIL_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t b,
      Describe(dnn, transposed_b ? turned(shaped({k, n}), k) : shaped({k, n}),
               type));
  OPTRAIL_ASSIGN_OR_RETURN(const dnnl_memory_desc_t bias,
                           Describe(dnn, Dense({1, n}), type));
  OPTRAIL_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t c,
      Describe(dnn, shaped({m, n}), float_c ? proto::F32 : type));
  dnnl_memory_desc_t chosen = b;
  if (packs_b) {
    OPTRAIL_ASSIGN_OR_RETURN(chosen, OfAnyLayout(dnn, b));
  }
  dnnl_matmul_desc_t desc;
  OPTRAIL_RETURN_IF_ERROR(
      Check(dnn.dnnl_matmul_desc_init(&desc, &a, &chosen,
                                      with_bias ? &bias : nullptr, &c),
            "dnnl_matmul_desc_init"));
  auto primitive = std::make_unique<Primitive>(dnn);
  OPTRAIL_RETURN_IF_ERROR(
      primitive->Create(&desc, {activation, nullptr, scale}));
  primitive->Bind(DNNL_ARG_SRC, 0, a);
  if (packs_b) {
    OPTRAIL_RETURN_IF_ERROR(primitive->BindWeights(1, b));
  } else {
    primitive->Bind(DNNL_ARG_WEIGHTS, 1, b);
  }
  if (with_bias) {
    primitive->Bind(DNNL_ARG_BIAS, 2, bias);
  }
  primitive->Bind(DNNL_ARG_DST, with_bias ? 3 : 2, c);
  return primitive;
}

OneDnnPrimitive OneDnnConv2d(const OneDnnConvolution& conv) {
  OPTRAIL_ONEDNN_OR_RETURN(dnn);
  // The library's dimensions are batch, channels, height, width, and of weights
  // outputs, inputs, height, width; strides say how they lie in memory.
  OPTRAIL_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t x,
      Describe(dnn,
               {{conv.n, conv.c, conv.h, conv.w},
                {conv.h * conv.w * conv.c, 1, conv.w * conv.c, conv.c}},
               conv.type));
  OPTRAIL_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t weights,
      Describe(dnn,
               {{conv.k, conv.c, conv.r, conv.s},
                {1, conv.k, conv.s * conv.c * conv.k, conv.c * conv.k}},
               conv.type));
  OPTRAIL_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t per_channel,
      Describe(dnn, {{1, conv.k, 1, 1}, {conv.k, 1, conv.k, conv.k}}));
  OPTRAIL_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t y,
      Describe(dnn,
               {{conv.n, conv.k, conv.p, conv.q},
                {conv.p * conv.q * conv.k, 1, conv.q * conv.k, conv.k}},
               conv.type));
  // The fast convolutions want weights in a layout of their own.
  OPTRAIL_ASSIGN_OR_RETURN(const dnnl_memory_desc_t chosen,
                           OfAnyLayout(dnn, weights));
  const dnnl_dims_t strides = {conv.stride, conv.stride};
  const dnnl_dims_t before = {conv.padding, conv.padding};
  // Beyond the end there may be less padding, where strides do not fit.
  const dnnl_dims_t after = {
      (conv.p - 1) * conv.stride + conv.r - conv.h - conv.padding,
      (conv.q - 1) * conv.stride + conv.s - conv.w - conv.padding};
  dnnl_convolution_desc_t desc;
  OPTRAIL_RETURN_IF_ERROR(
      Check(dnn.dnnl_convolution_forward_desc_init(
                &desc, dnnl_forward_inference, dnnl_convolution_direct, &x,
                &chosen, nullptr, &y, strides, before, after),
            "dnnl_convolution_forward_desc_init"));
  auto primitive = std::make_unique<Primitive>(dnn);
  if (conv.fused) {
    OPTRAIL_RETURN_IF_ERROR(
        primitive->Create(&desc, {OneDnnActivation::kRelu, &per_channel}));
    for (const int post_op : {0, 1}) {
      primitive->Bind(DNNL_ARG_ATTR_MULTIPLE_POST_OP(post_op) | DNNL_ARG_SRC_1,
                      2 + post_op, per_channel);
    }
  } else {
    OPTRAIL_RETURN_IF_ERROR(primitive->Create(&desc));
  }
  primitive->Bind(DNNL_ARG_SRC, 0, x);
  OPTRAIL_RETURN_IF_ERROR(primitive->BindWeights(1, weights));
  primitive->Bind(DNNL_ARG_DST, conv.fused ? 4 : 2, y);
  return primitive;
}

OneDnnPrimitive OneDnnSum(int64_t rows, int64_t cols, bool over_rows) {
  OPTRAIL_ONEDNN_OR_RETURN(dnn);
  OPTRAIL_ASSIGN_OR_RETURN(const dnnl_memory_desc_t x,
                           Describe(dnn, Dense({rows, cols})));
  OPTRAIL_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t y,
      Describe(dnn, over_rows ? Dense({1, cols}) : Dense({rows, 1})));
  dnnl_reduction_desc_t desc;
  OPTRAIL_RETURN_IF_ERROR(
      Check(dnn.dnnl_reduction_desc_init(&desc, dnnl_reduction_sum, &x, &y,
                                         0.0f, 0.0f),
            "dnnl_reduction_desc_init"));
  auto primitive = std::make_unique<Primitive>(dnn);
  OPTRAIL_RETURN_IF_ERROR(primitive->Create(&desc));
  primitive->Bind(DNNL_ARG_SRC, 0, x);
  primitive->Bind(DNNL_ARG_DST, 1, y);
  return primitive;
}

#else

OneDnnPrimitive OneDnnSoftmax(int64_t, int64_t, proto::DataType) {
  return WithoutHeaders();
}
OneDnnPrimitive OneDnnElementwise(OneDnnActivation, int64_t) {
  return WithoutHeaders();
}
OneDnnPrimitive OneDnnLayerNorm(int64_t, int64_t, double, bool) {
  return WithoutHeaders();
}
OneDnnPrimitive OneDnnLayerNormBackward(int64_t, int64_t) {
  return WithoutHeaders();
}
OneDnnPrimitive OneDnnMatmul(const OneDnnProduct&) { return WithoutHeaders(); }
OneDnnPrimitive OneDnnConv2d(const OneDnnConvolution&) {
  return WithoutHeaders();
}
OneDnnPrimitive OneDnnSum(int64_t, int64_t, bool) { return WithoutHeaders(); }

#endif  // OPTRAIL_HAS_ONEDNN

std::shared_ptr<Backend> MakeOneDnnBackend(
    std::function<OneDnnPrimitive(const proto::Shape&)> make,
    std::vector<std::vector<proto::DataType>> types) {
  return std::make_shared<OneDnnBackend>(std::move(make), std::move(types));
}

}  // namespace optrail::ops
