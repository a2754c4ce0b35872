// A cuDNN without a GPU, for tests: it computes graphs of convolutions,
// products, reductions, elementwise operations and norms over floats in the
// host's memory, where the fake driver (ops/device/cuda/testing/fake_driver.cc)
// has operands, as their descriptors say. It does as $OPTRAIL_FAKE_CUDNN says,
// "what=number" pairs separated by commas: "version", "create" (what
// cudnnCreate returns), "favourites" (how many of its proposals there are).
//
// Of its favourites the first rounds sums, the second computes floats with
// TF32, the third cannot be built, the fourth can. Its fallback wants a
// workspace and fails without.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

int Scripted(const char* what, int otherwise) {
  const char* const script = getenv("OPTRAIL_FAKE_CUDNN");
  if (script == nullptr) return otherwise;
  const std::string text = std::string(",") + script;
  const std::string key = std::string(",") + what + "=";
  const size_t at = text.find(key);
  return at == std::string::npos ? otherwise
                                 : atoi(text.c_str() + at + key.size());
}

constexpr int kBadParameter = 2000, kNotSupported = 3000;
// Kinds of descriptors and attributes of the library.
constexpr int kEngineConfig = 3, kHeuristic = 4, kPlan = 5;
constexpr int kConvolutionForward = 10, kPointwise = 13, kProduct = 19,
              kReduction = 22, kNormForward = 29, kNormBackward = 30;
constexpr int kFallback = 2;
constexpr int kTurnedDown = 2, kFromFallback = 4;  // proposals

struct Descriptor {
  int kind = 0;
  std::map<int, std::vector<char>> attributes;
  // An engine config, an engine and a plan have this.
  int proposal = -1;
  const Descriptor* graph = nullptr;

  template <typename T>
  std::vector<T> All(int name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    std::vector<T> values(found->second.size() / sizeof(T));
    memcpy(values.data(), found->second.data(), found->second.size());
    return values;
  }
  template <typename T>
  T One(int name) const {
    const std::vector<T> values = All<T>(name);
    return values.empty() ? T() : values[0];
  }
  bool Has(int name) const { return attributes.count(name) > 0; }
  const Descriptor& Other(int name) const {
    return *One<const Descriptor*>(name);
  }
};

// Addresses of the elements of a tensor.
class Tensor {
 public:
  Tensor(const Descriptor& descriptor, float* data)
      : dims_(descriptor.All<int64_t>(902)),
        strides_(descriptor.All<int64_t>(903)),
        data_(data) {}
  int64_t dim(int i) const { return dims_[i]; }
  float& at(int64_t a, int64_t b, int64_t c, int64_t d) const {
    const int64_t index[] = {a, b, c, d};
    int64_t offset = 0;
    for (int i = 0; i < 4; ++i) {
      offset += std::min(index[i], dims_[i] - 1) * strides_[i];
    }
    return data_[offset];
  }
  template <typename F>
  void ForEach(F f) const {
    for (int64_t a = 0; a < dim(0); ++a) {
      for (int64_t b = 0; b < dim(1); ++b) {
        for (int64_t c = 0; c < dim(2); ++c) {
          for (int64_t d = 0; d < dim(3); ++d) f(a, b, c, d);
        }
      }
    }
  }

 private:
  std::vector<int64_t> dims_, strides_;
  float* const data_;
};

void Convolve(const Tensor& x, const Tensor& w, const Tensor& y,
              const Descriptor& convolution) {
  const auto stride = convolution.All<int64_t>(103);
  const auto before = convolution.All<int64_t>(105);
  y.ForEach([&](int64_t n, int64_t k, int64_t p, int64_t q) {
    float sum = 0;
    for (int64_t c = 0; c < w.dim(1); ++c) {
      for (int64_t r = 0; r < w.dim(2); ++r) {
        for (int64_t s = 0; s < w.dim(3); ++s) {
          const int64_t row = p * stride[0] + r - before[0];
          const int64_t col = q * stride[1] + s - before[1];
          if (row < 0 || row >= x.dim(2) || col < 0 || col >= x.dim(3)) {
            continue;
          }
          sum += x.at(n, c, row, col) * w.at(k, c, r, s);
        }
      }
    }
    y.at(n, k, p, q) = sum;
  });
}

// The heads of b may serve several of a.
void Multiply(const Tensor& a, const Tensor& b, const Tensor& c) {
  const int64_t group = c.dim(1) / b.dim(1);
  c.ForEach([&](int64_t n, int64_t h, int64_t i, int64_t j) {
    float sum = 0;
    for (int64_t k = 0; k < a.dim(3); ++k) {
      sum += a.at(n, h, i, k) * b.at(n, h / group, k, j);
    }
    c.at(n, h, i, j) = sum;
  });
}

void Reduce(bool max, const Tensor& x, const Tensor& y) {
  y.ForEach([&](int64_t n, int64_t h, int64_t i, int64_t) {
    float all = x.at(n, h, i, 0);
    for (int64_t j = 1; j < x.dim(3); ++j) {
      const float v = x.at(n, h, i, j);
      all = max ? std::max(all, v) : all + v;
    }
    y.at(n, h, i, 0) = all;
  });
}

// By mode of the library; false for others. `axis` of index.
bool Elementwise(int mode, int64_t axis, const std::vector<Tensor>& inputs,
                 const Tensor& y) {
  bool known = true;
  y.ForEach([&](int64_t i, int64_t j, int64_t k, int64_t l) {
    const auto in = [&](size_t n) { return inputs.at(n).at(i, j, k, l); };
    float& out = y.at(i, j, k, l);
    if (mode == 0) {
      out = in(0) + in(1);
    } else if (mode == 1) {
      out = in(0) * in(1);
    } else if (mode == 6) {
      out = in(0) / in(1);
    } else if (mode == 9) {
      out = in(0) - in(1);
    } else if (mode == 13) {
      out = std::exp(in(0));
    } else if (mode == 15) {
      out = std::log(in(0));
    } else if (mode == 100) {
      out = std::max(in(0), 0.f);
    } else if (mode == 303) {
      out = in(0) >= in(1) ? 1 : 0;
    } else if (mode == 501) {
      const int64_t index[] = {i, j, k, l};
      out = static_cast<float>(index[axis]);
    } else if (mode == 601) {
      out = in(2) != 0 ? in(0) : in(1);
    } else {
      known = false;
    }
  });
  return known;
}

// Of rows of channels, centred where there is a beta.
void NormForward(const Tensor& x, const Tensor& gamma, const Tensor* beta,
                 float epsilon, const Tensor& y, const Tensor* means,
                 const Tensor* rstds) {
  const int64_t cols = x.dim(1);
  for (int64_t r = 0; r < x.dim(0); ++r) {
    float mean = 0, squares = 0;
    for (int64_t c = 0; beta != nullptr && c < cols; ++c) {
      mean += x.at(r, c, 0, 0) / cols;
    }
    for (int64_t c = 0; c < cols; ++c) {
      const float d = x.at(r, c, 0, 0) - mean;
      squares += d * d / cols;
    }
    const float rstd = 1 / std::sqrt(squares + epsilon);
    for (int64_t c = 0; c < cols; ++c) {
      y.at(r, c, 0, 0) =
          (x.at(r, c, 0, 0) - mean) * rstd * gamma.at(0, c, 0, 0) +
          (beta == nullptr ? 0 : beta->at(0, c, 0, 0));
    }
    if (means != nullptr) means->at(r, 0, 0, 0) = mean;
    if (rstds != nullptr) rstds->at(r, 0, 0, 0) = rstd;
  }
}

void NormBackward(const Tensor& dy, const Tensor& x, const Tensor& gamma,
                  const Tensor* means, const Tensor& rstds, const Tensor& dx,
                  const Tensor& dgamma, const Tensor* dbeta) {
  const int64_t cols = x.dim(1);
  for (int64_t c = 0; c < cols; ++c) {
    dgamma.at(0, c, 0, 0) = 0;
    if (dbeta != nullptr) dbeta->at(0, c, 0, 0) = 0;
  }
  for (int64_t r = 0; r < x.dim(0); ++r) {
    const float mean = means == nullptr ? 0 : means->at(r, 0, 0, 0);
    const float rstd = rstds.at(r, 0, 0, 0);
    const auto h = [&](int64_t c) { return (x.at(r, c, 0, 0) - mean) * rstd; };
    const auto g = [&](int64_t c) {
      return dy.at(r, c, 0, 0) * gamma.at(0, c, 0, 0);
    };
    float mean_g = 0, mean_gh = 0;
    for (int64_t c = 0; c < cols; ++c) {
      if (means != nullptr) mean_g += g(c) / cols;
      mean_gh += g(c) * h(c) / cols;
      dgamma.at(0, c, 0, 0) += dy.at(r, c, 0, 0) * h(c);
      if (dbeta != nullptr) dbeta->at(0, c, 0, 0) += dy.at(r, c, 0, 0);
    }
    for (int64_t c = 0; c < cols; ++c) {
      dx.at(r, c, 0, 0) = rstd * (g(c) - mean_g - h(c) * mean_gh);
    }
  }
}

// The tensors of a call, each between two operations in memory of its own.
class Call {
 public:
  explicit Call(const Descriptor& variant_pack) {
    const auto ids = variant_pack.All<int64_t>(1000);
    const auto data = variant_pack.All<float*>(1001);
    for (size_t i = 0; i < ids.size(); ++i) addresses_[ids[i]] = data[i];
  }

  // False for an operation that is not known here.
  bool Compute(const Descriptor& operation) {
    const auto tensor = [&](int name) { return Find(operation.Other(name)); };
    // The tensors at their places in the operation.
    std::vector<std::unique_ptr<Tensor>> found;
    const auto maybe = [&](int name) -> const Tensor* {
      if (!operation.Has(name)) return nullptr;
      found.push_back(std::make_unique<Tensor>(tensor(name)));
      return found.back().get();
    };
    switch (operation.kind) {
      case kConvolutionForward:
        Convolve(tensor(704), tensor(703), tensor(705), operation.Other(702));
        return true;
      case kProduct:
        Multiply(tensor(1520), tensor(1521), tensor(1522));
        return true;
      case kReduction:
        Reduce(operation.Other(1612).One<int>(1600) == 3, tensor(1610),
               tensor(1611));
        return true;
      case kPointwise: {
        std::vector<Tensor> inputs;
        for (const int name : {751, 752, 758}) {
          if (operation.Has(name)) inputs.push_back(tensor(name));
        }
        const Descriptor& pointwise = operation.Other(750);
        return Elementwise(pointwise.One<int>(0), pointwise.One<int64_t>(9),
                           inputs, tensor(753));
      }
      case kNormForward: {
        const bool training = operation.One<int>(2001) == 1;
        if (training != operation.Has(2004)) return false;
        if ((operation.One<int>(2000) == 0) != operation.Has(2006)) {
          return false;
        }
        NormForward(tensor(2002), tensor(2005), maybe(2006),
                    tensor(2007).at(0, 0, 0, 0), tensor(2013), maybe(2003),
                    maybe(2004));
        return true;
      }
      case kNormBackward:
        // The library refuses the number 0.
        for (const int name : {2101, 2103, 2104, 2105, 2107, 2109}) {
          if (operation.Other(name).One<int64_t>(906) == 0) return false;
        }
        if ((operation.One<int>(2100) == 0) != operation.Has(2108)) {
          return false;
        }
        NormBackward(tensor(2104), tensor(2101), tensor(2105), maybe(2102),
                     tensor(2103), tensor(2109), tensor(2107), maybe(2108));
        return true;
      default:
        return false;
    }
  }

 private:
  Tensor Find(const Descriptor& described) {
    const auto id = described.One<int64_t>(906);
    std::vector<float>& values = between_[id];
    const bool is_virtual = described.One<char>(907) != 0;
    const bool is_integer =
        described.One<char>(908) != 0 && described.One<int>(901) == 4;
    if (values.empty() && is_integer) {
      int number;
      memcpy(&number, addresses_.at(id), sizeof(number));
      values.push_back(static_cast<float>(number));
    } else if (values.empty() && is_virtual) {
      int64_t count = 1;
      for (const int64_t dim : described.All<int64_t>(902)) count *= dim;
      values.resize(count);
    }
    return Tensor(described,
                  values.empty() ? addresses_.at(id) : values.data());
  }

  std::map<int64_t, float*> addresses_;
  std::map<int64_t, std::vector<float>> between_;
};

}  // namespace

#define FAKE(type, name, ...)        \
  extern "C" type name(__VA_ARGS__); \
  extern "C" type name(__VA_ARGS__)

FAKE(size_t, cudnnGetVersion) { return Scripted("version", 91900); }
FAKE(void, cudnnGetLastErrorString, char* text, size_t bytes) {
  strncpy(text, "what it is about\nWarning; Reason: because\nmore", bytes);
}
FAKE(int, cudnnCreate, void** handle) {
  *handle = new int(0);
  return Scripted("create", 0);
}
FAKE(int, cudnnDestroy, void* handle) {
  delete static_cast<int*>(handle);
  return 0;
}
FAKE(int, cudnnSetStream, void*, void*) { return 0; }
FAKE(int, cudnnBackendCreateDescriptor, int kind, void** descriptor) {
  auto* const made = new Descriptor;
  made->kind = kind;
  *descriptor = made;
  return 0;
}
FAKE(int, cudnnBackendDestroyDescriptor, void* descriptor) {
  delete static_cast<Descriptor*>(descriptor);
  return 0;
}
FAKE(int, cudnnBackendSetAttribute, void* descriptor, int name, int type,
     int64_t count, const void* values) {
  // By type: handle, data type, bool, int64, float, double, pointer, ...
  static const std::map<int, size_t> bytes = {
      {0, 8}, {1, 4},  {2, 1},  {3, 8},  {4, 4},  {6, 8}, {7, 4},
      {8, 4}, {14, 4}, {15, 8}, {18, 4}, {27, 4}, {28, 4}};
  const auto found = bytes.find(type);
  if (found == bytes.end()) return kBadParameter;
  const auto* const first = static_cast<const char*>(values);
  static_cast<Descriptor*>(descriptor)->attributes[name] =
      std::vector<char>(first, first + count * found->second);
  return 0;
}
FAKE(int, cudnnBackendGetAttribute, void* descriptor, int name, int,
     int64_t asked, int64_t* count, void* values) {
  const auto& made = *static_cast<Descriptor*>(descriptor);
  if (made.kind == kHeuristic && name == 202) {
    const bool fallback = made.One<int>(200) == kFallback;
    const int first = fallback ? kFromFallback : 0;
    *count = fallback ? 1 : Scripted("favourites", kFromFallback);
    for (int i = 0; i < std::min(asked, *count); ++i) {
      Descriptor& proposal = *static_cast<Descriptor**>(values)[i];
      proposal.proposal = first + i;
      proposal.graph = &made.Other(201);
    }
    return 0;
  }
  *count = 1;
  if (made.kind == kEngineConfig && name == 300) {
    (*static_cast<Descriptor**>(values))->proposal = made.proposal;
    return 0;
  }
  if (name == 1303) {  // notes
    *count = made.proposal < 2 ? 1 : 0;
    *static_cast<int*>(values) = made.proposal == 0 ? 2 : 0;
    return 0;
  }
  if (made.kind == kPlan && name == 402) {
    *static_cast<int64_t*>(values) = made.proposal == kFromFallback ? 4096 : 0;
    return 0;
  }
  return kBadParameter;
}
FAKE(int, cudnnBackendFinalize, void* descriptor) {
  auto& made = *static_cast<Descriptor*>(descriptor);
  if (made.kind != kPlan) return 0;
  const Descriptor& config = made.Other(401);
  made.proposal = config.proposal;
  made.graph = config.graph;
  return made.proposal == kTurnedDown ? kNotSupported : 0;
}
FAKE(int, cudnnBackendExecute, void*, void* plan, void* variant_pack) {
  const auto& made = *static_cast<Descriptor*>(plan);
  const auto& pack = *static_cast<Descriptor*>(variant_pack);
  if (made.proposal == kFromFallback && pack.One<void*>(1003) == nullptr) {
    return kBadParameter;
  }
  Call call(pack);
  for (const auto* operation : made.graph->All<const Descriptor*>(801)) {
    if (!call.Compute(*operation)) return kBadParameter;
  }
  return 0;
}
