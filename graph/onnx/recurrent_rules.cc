// Recurrent layers: the products with all of x come first, as one, and what is
// left of each time step becomes nodes of its own.

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "graph/onnx/node_import.h"

namespace optrail::graph {
namespace {

using Results = std::vector<int>;

// Nodes that one layer may become.
constexpr int64_t kMostTimeSteps = 4096;

// The state of a layer in one direction: c is that of LSTM alone.
struct State {
  int h = -1, c = -1;
};

// A kind of layer computes the next state in Step(): its `x` are the products
// of x with the weights of all gates, [batch, gates * hidden], with their
// biases.
class Recurrence {
 public:
  Recurrence(NodeImport& node, int gates) : node_(node), gates_(gates) {}
  virtual ~Recurrence() = default;

  Results Run();

 protected:
  virtual State Step(int x, const State& state) = 0;
  // True if the bias of the products with the state joins that of x.
  virtual bool AddsStateBias(int gate) const { return true; }
  virtual int default_activations() const = 0;

  int Gate(int all, int gate) {
    return node_.Slice(all, 1, gate * hidden_, hidden_);
  }
  int Add(int a, int b) { return node_.Emit("add", {a, b}); }
  int Mul(int a, int b) { return node_.Emit("mul", {a, b}); }
  // 1 - a
  int Rest(int a) { return node_.Emit("sub", {node_.Scalar(a, 1), a}); }
  // The activation of that number, of what is clipped before.
  int Activated(int number, int x);

  NodeImport& node_;
  const int gates_;
  int64_t hidden_ = 0;
  int weights_ =
      -1;  // of the state in this direction, [hidden, gates * hidden]
  int state_bias_ = -1;  // [gates * hidden]; -1: none
  int peepholes_ = -1;   // [3 * hidden]; -1: none

 private:
  int OfDirection(int value, int64_t d) {
    if (value < 0) return -1;
    const Dims dims = node_.dims(value);
    return node_.Reshape(node_.Slice(value, 0, d, 1),
                         Dims(dims.begin() + 1, dims.end()));
  }
  int Parameter(int input, const Dims& dims);
  int StartOf(int input, int64_t batch, bool batch_first);
  int InputProducts(int x, int64_t d);
  void Direction(int x, int64_t d, State state, bool backward);

  int64_t directions_ = 1;
  std::vector<int> lengths_;         // for each time step, whether it is one
  std::vector<std::vector<int>> y_;  // by direction and time
  std::vector<State> last_;          // of each direction that is done
};

int Recurrence::Activated(int number, int x) {
  static const char* const kDefaults[] = {"sigmoid", "tanh", "tanh"};
  const auto found = node_.onnx().attributes.find("activations");
  const bool named = found != node_.onnx().attributes.end();
  const int count = default_activations();
  // Another direction has names of its own behind those of the first.
  const size_t place =
      static_cast<size_t>(number + static_cast<int>(last_.size()) * count);
  std::string name = kDefaults[count == 1 ? 1 : number];
  if (named && place < found->second.texts.size()) {
    name = absl::AsciiStrToLower(found->second.texts[place]);
  }
  if (node_.HasAttribute("activation_alpha") ||
      node_.HasAttribute("activation_beta") ||
      (name != "sigmoid" && name != "tanh" && name != "relu" &&
       name != "softplus")) {
    node_.NotCovered(absl::StrCat("activation ", name,
                                  "; expected Sigmoid, Tanh, Relu or Softplus"
                                  " without alpha and beta"));
    return NodeImport::kFailed;
  }
  if (node_.HasAttribute("clip")) {
    const double most = node_.Real("clip", 0);
    x = node_.Emit("max", {x, node_.Scalar(x, -most)});
    x = node_.Emit("min", {x, node_.Scalar(x, most)});
  }
  return node_.Emit(name, {x});
}

// An operand whose dimensions must be these; -1 where it is left out.
int Recurrence::Parameter(int input, const Dims& dims) {
  const int value = node_.InOr(input);
  if (value >= 0 && node_.ok() && node_.dims(value) != dims) {
    node_.Wrong(absl::StrCat("operand ", input, " is ",
                             TypeText(node_.type(value)), "; expected ",
                             TypeText({node_.type(value).type, dims})));
  }
  return value;
}

// The state before the first step, [directions, batch, hidden].
int Recurrence::StartOf(int input, int64_t batch, bool batch_first) {
  const Dims dims = {directions_, batch, hidden_};
  if (!node_.Has(input)) {
    return node_.Expand(node_.Scalar(node_.In(0), 0), dims);
  }
  if (!batch_first) return Parameter(input, dims);
  const int value = Parameter(input, {batch, directions_, hidden_});
  return node_.Transpose(value, {1, 0, 2});
}

// [time, batch, gates * hidden]
int Recurrence::InputProducts(int x, int64_t d) {
  const int w = node_.Transpose(OfDirection(node_.In(1), d), {1, 0});
  int products = node_.Emit("matmul", {x, w});
  if (!node_.Has(3)) return products;
  const int bias = OfDirection(node_.In(3), d);
  const int64_t size = gates_ * hidden_;
  products = Add(products, node_.Slice(bias, 0, 0, size));
  std::vector<int> parts;
  state_bias_ = node_.Slice(bias, 0, size, size);
  for (int g = 0; g < gates_; ++g) {
    const int part = node_.Slice(state_bias_, 0, g * hidden_, hidden_);
    parts.push_back(AddsStateBias(g)
                        ? part
                        : node_.Expand(node_.Scalar(part, 0), {hidden_}));
  }
  return Add(products, parts.size() == 1 ? parts[0]
                                         : node_.Emit("concat", parts,
                                                      {{"axis", int64_t{0}}}));
}

void Recurrence::Direction(int x, int64_t d, State state, bool backward) {
  weights_ = node_.Transpose(OfDirection(node_.In(2), d), {1, 0});
  peepholes_ = OfDirection(node_.InOr(7), d);
  state_bias_ = -1;
  const int products = InputProducts(x, d);
  if (!node_.ok()) return;
  const int64_t times = node_.dims(x)[0], batch = node_.dims(x)[1];
  std::vector<int> ys(times, -1);
  for (int64_t i = 0; i < times && node_.ok(); ++i) {
    const int64_t t = backward ? times - 1 - i : i;
    const int now = node_.Reshape(node_.Slice(products, 0, t, 1),
                                  {batch, gates_ * hidden_});
    State next = Step(now, state);
    ys[t] = next.h;
    if (!lengths_.empty()) {
      // Behind the end of a sequence the state stays, and y is 0.
      const int is_there = lengths_[t];
      ys[t] = node_.Emit("where", {is_there, next.h, node_.Scalar(next.h, 0)});
      next.h = node_.Emit("where", {is_there, next.h, state.h});
      if (next.c >= 0) {
        next.c = node_.Emit("where", {is_there, next.c, state.c});
      }
    }
    state = next;
  }
  y_.push_back(std::move(ys));
  last_.push_back(state);
}

Results Recurrence::Run() {
  const int w = node_.In(1);
  const bool batch_first = node_.Int("layout", 0) != 0;
  int x = node_.In(0);
  node_.In(2);
  if (!node_.ok()) return {};
  if (node_.rank(x) != 3 || node_.rank(w) != 3 ||
      node_.dims(w)[1] % gates_ != 0) {
    node_.Wrong(absl::StrCat("x is ", TypeText(node_.type(x)),
                             " and the weights are ", TypeText(node_.type(w))));
    return {};
  }
  if (batch_first) x = node_.Transpose(x, {1, 0, 2});
  const int64_t times = node_.dims(x)[0], batch = node_.dims(x)[1];
  const std::string direction = node_.Text("direction", "forward");
  directions_ = direction == "bidirectional" ? 2 : 1;
  hidden_ = node_.dims(w)[1] / gates_;
  if (node_.Int("hidden_size", hidden_) != hidden_) {
    node_.Wrong(
        absl::StrCat("hidden_size is not that of ", TypeText(node_.type(w))));
  }
  const int64_t all = gates_ * hidden_;
  Parameter(1, {directions_, all, node_.dims(x)[2]});
  Parameter(2, {directions_, all, hidden_});
  Parameter(3, {directions_, 2 * all});
  const int lengths = Parameter(4, {batch});
  Parameter(7, {directions_, 3 * hidden_});
  if (times < 1 || hidden_ < 1 || times * directions_ > kMostTimeSteps) {
    node_.NotCovered(
        absl::StrCat(times, " time steps; expected 1 to ", kMostTimeSteps));
  }
  if (!node_.ok()) return {};
  for (int64_t t = 0; lengths >= 0 && t < times; ++t) {
    lengths_.push_back(node_.Reshape(
        node_.Emit("greater", {lengths, node_.Scalar(lengths, t)}),
        {batch, 1}));
  }
  const bool has_c = node_.onnx().op == "LSTM";
  const int h = StartOf(5, batch, batch_first);
  const int c = has_c ? StartOf(6, batch, batch_first) : -1;
  for (int64_t d = 0; d < directions_; ++d) {
    Direction(x, d, {OfDirection(h, d), OfDirection(c, d)},
              d == 1 || direction == "reverse");
  }
  if (!node_.ok()) return {};
  // Y is [time, directions, batch, hidden], and the others are without time.
  std::vector<int> ys, hs, cs;
  const Dims one = {1, 1, batch, hidden_};
  for (int64_t t = 0; t < times; ++t) {
    for (int64_t d = 0; d < directions_; ++d) {
      ys.push_back(node_.Reshape(y_[d][t], one));
    }
  }
  for (const State& state : last_) {
    hs.push_back(node_.Reshape(state.h, {1, batch, hidden_}));
    if (has_c) cs.push_back(node_.Reshape(state.c, {1, batch, hidden_}));
  }
  const auto joined = [&](const std::vector<int>& parts) {
    return parts.size() == 1
               ? parts[0]
               : node_.Emit("concat", parts, {{"axis", int64_t{0}}});
  };
  Results results = {
      node_.Reshape(joined(ys), {times, directions_, batch, hidden_}),
      joined(hs)};
  if (has_c) results.push_back(joined(cs));
  if (batch_first) {
    results[0] = node_.Transpose(results[0], {2, 0, 1, 3});
    for (size_t i = 1; i < results.size(); ++i) {
      results[i] = node_.Transpose(results[i], {1, 0, 2});
    }
  }
  return results;
}

// h = f(x + h r)
class Rnn : public Recurrence {
 public:
  explicit Rnn(NodeImport& node) : Recurrence(node, 1) {}

 protected:
  int default_activations() const override { return 1; }
  State Step(int x, const State& state) override {
    const int product = node_.Emit("matmul", {state.h, weights_});
    return {Activated(0, Add(x, product))};
  }
};

// Gates i, o, f and c.
class Lstm : public Recurrence {
 public:
  explicit Lstm(NodeImport& node) : Recurrence(node, 4) {}

 protected:
  int default_activations() const override { return 3; }
  State Step(int x, const State& state) override {
    const int all = Add(x, node_.Emit("matmul", {state.h, weights_}));
    const int i = Activated(0, Peeped(Gate(all, 0), 0, state.c));
    const int f = node_.Int("input_forget", 0) != 0
                      ? Rest(i)
                      : Activated(0, Peeped(Gate(all, 2), 2, state.c));
    const int c = Add(Mul(f, state.c), Mul(i, Activated(1, Gate(all, 3))));
    const int o = Activated(0, Peeped(Gate(all, 1), 1, c));
    return {Mul(o, Activated(2, c)), c};
  }

 private:
  int Peeped(int gate, int number, int c) {
    if (peepholes_ < 0) return gate;
    return Add(gate,
               Mul(c, node_.Slice(peepholes_, 0, number * hidden_, hidden_)));
  }
};

// Gates z, r and h.
class Gru : public Recurrence {
 public:
  explicit Gru(NodeImport& node)
      : Recurrence(node, 3),
        resets_products_(node.Int("linear_before_reset", 0) != 0) {}

 protected:
  int default_activations() const override { return 2; }
  bool AddsStateBias(int gate) const override {
    return gate < 2 || !resets_products_;
  }
  State Step(int x, const State& state) override {
    int products, h;
    if (resets_products_) {
      products = node_.Emit("matmul", {state.h, weights_});
    } else {
      products = node_.Emit(
          "matmul", {state.h, node_.Slice(weights_, 1, 0, 2 * hidden_)});
    }
    const int z = Activated(0, Add(Gate(x, 0), Gate(products, 0)));
    const int r = Activated(0, Add(Gate(x, 1), Gate(products, 1)));
    if (resets_products_) {
      h = Gate(products, 2);
      if (state_bias_ >= 0) {
        h = Add(h, node_.Slice(state_bias_, 0, 2 * hidden_, hidden_));
      }
      h = Mul(r, h);
    } else {
      h = node_.Emit(
          "matmul",
          {Mul(r, state.h), node_.Slice(weights_, 1, 2 * hidden_, hidden_)});
    }
    h = Activated(1, Add(Gate(x, 2), h));
    return {Add(Mul(Rest(z), h), Mul(z, state.h))};
  }

 private:
  const bool resets_products_;
};

}  // namespace

void AddRecurrentRules(ImportRules& rules) {
  rules["GRU"] = [](NodeImport& node) { return Gru(node).Run(); };
  rules["LSTM"] = [](NodeImport& node) { return Lstm(node).Run(); };
  rules["RNN"] = [](NodeImport& node) { return Rnn(node).Run(); };
}

}  // namespace optrail::graph
