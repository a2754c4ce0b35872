// A cuDNN without a GPU, for tests: it computes graphs of convolutions and
// elementwise operations over floats in the host's memory, where the fake
// driver (ops/device/cuda/fake_driver.cc) has operands, as their descriptors
// say. It does as $OPTRAIL_FAKE_CUDNN says, "what=number" pairs separated by
// commas: "version", "create" (what cudnnCreate returns), "favourites" (how
// many of its proposals there are).
//
// Of its favourites the first rounds sums, the second computes floats with
// TF32, the third cannot be built, the fourth can. Its fallback wants a
// workspace and fails without.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
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
constexpr int kConvolutionForward = 10;
constexpr int kFallback = 2;
constexpr int kMultiply = 1, kRelu = 100;          // pointwise modes
constexpr int kTurnedDown = 2, kFromFallback = 4;  // proposals

struct Descriptor {
  int kind = 0;
  std::map<int, std::vector<char>> attributes;
  // Of an engine config, an engine and a plan.
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
  const Descriptor& Other(int name) const {
    return *One<const Descriptor*>(name);
  }
};

// Where the elements of a tensor lie.
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

}  // namespace

#define FAKE(type, name, ...)        \
  extern "C" type name(__VA_ARGS__); \
  extern "C" type name(__VA_ARGS__)

FAKE(size_t, cudnnGetVersion) { return Scripted("version", 91900); }
FAKE(void, cudnnGetLastErrorString, char* text, size_t bytes) {
  strncpy(text, "scripted", bytes);
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
  static const std::map<int, size_t> bytes = {{0, 8},  {1, 4}, {2, 1}, {3, 8},
                                              {4, 4},  {6, 8}, {7, 4}, {8, 4},
                                              {14, 4}, {15, 8}};
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
  std::map<int64_t, float*> addresses;
  const auto ids = pack.All<int64_t>(1000);
  const auto data = pack.All<float*>(1001);
  for (size_t i = 0; i < ids.size(); ++i) addresses[ids[i]] = data[i];
  std::map<int64_t, std::vector<float>> between;
  const auto tensor = [&](const Descriptor& described) {
    const auto id = described.One<int64_t>(906);
    if (described.One<char>(907) != 0) {
      std::vector<float>& values = between[id];
      if (values.empty()) {
        int64_t count = 1;
        for (const int64_t dim : described.All<int64_t>(902)) count *= dim;
        values.resize(count);
      }
      addresses[id] = values.data();
    }
    return Tensor(described, addresses.at(id));
  };
  for (const auto* operation : made.graph->All<const Descriptor*>(801)) {
    if (operation->kind == kConvolutionForward) {
      Convolve(tensor(operation->Other(704)), tensor(operation->Other(703)),
               tensor(operation->Other(705)), operation->Other(702));
      continue;
    }
    const int mode = operation->Other(750).One<int>(0);
    const Tensor a = tensor(operation->Other(751));
    const Tensor b = mode == kRelu ? a : tensor(operation->Other(752));
    const Tensor y = tensor(operation->Other(753));
    y.ForEach([&](int64_t i, int64_t j, int64_t k, int64_t l) {
      const float v = a.at(i, j, k, l), u = b.at(i, j, k, l);
      y.at(i, j, k, l) = mode == kRelu       ? std::max(v, 0.f)
                         : mode == kMultiply ? v * u
                                             : v + u;
    });
  }
  return 0;
}
