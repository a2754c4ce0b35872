#include "tuning/schedule/algorithm.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace optrail::tuning {
namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 40;
constexpr int kMaxStages = 64;
constexpr int kMaxDims = 8;

class TextReader {
 public:
  explicit TextReader(absl::string_view text) : text_(text) {}

  absl::StatusOr<Algorithm> Read() {
    for (const absl::string_view line : absl::StrSplit(text_, '\n')) {
      ++line_;
      words_ = absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (words_.empty()) continue;
      const absl::Status status = ReadLine();
      if (!status.ok()) return status;
    }
    if (algorithm_.stages.empty()) return Expected("a stage");
    for (const Stage& stage : algorithm_.stages) {
      if (stage.definitions.empty()) {
        return Expected(absl::StrCat("a def of stage ", stage.name));
      }
    }
    const auto last = static_cast<int>(algorithm_.stages.size()) - 1;
    if (algorithm_.outputs.empty()) algorithm_.outputs = {last};
    return std::move(algorithm_);
  }

 private:
  absl::Status Expected(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("algorithm, line ", line_, ": \"",
                     absl::StrJoin(words_, " "), "\": expected ", what));
  }

  absl::Status ReadLine() {
    const absl::string_view kind = words_[0];
    if (kind == "input" || kind == "stage") return ReadStage();
    if (kind == "def") return ReadDefinition();
    if (kind == "read") return ReadAccess();
    if (kind == "outputs") return ReadOutputs();
    return Expected("input, stage, def, read or outputs");
  }

  // Those of the line, from its fourth word on.
  absl::Status ReadExtents(std::vector<int64_t>* extents) {
    for (size_t i = 3; i < words_.size(); ++i) {
      int64_t extent;
      if (!absl::SimpleAtoi(words_[i], &extent) || extent < 1 ||
          extent > kMaxExtent) {
        return Expected("extents of at least 1");
      }
      extents->push_back(extent);
    }
    return absl::OkStatus();
  }

  absl::Status ReadStage() {
    Stage stage;
    if (words_.size() < 3 || words_.size() > 3 + kMaxDims ||
        !absl::SimpleAtoi(words_[2], &stage.element_bytes) ||
        stage.element_bytes < 1 || stage.element_bytes > 64) {
      return Expected("NAME ELEMENT_BYTES EXTENT...");
    }
    stage.name = std::string(words_[1]);
    OPTRAIL_RETURN_IF_ERROR(ReadExtents(&stage.extents));
    if (words_[0] == "input") {
      if (algorithm_.inputs.size() >= kMaxStages) {
        return Expected(absl::StrCat("at most ", kMaxStages, " inputs"));
      }
      algorithm_.inputs.push_back(std::move(stage));
    } else {
      if (algorithm_.stages.size() >= kMaxStages) {
        return Expected(absl::StrCat("at most ", kMaxStages, " stages"));
      }
      algorithm_.stages.push_back(std::move(stage));
    }
    return absl::OkStatus();
  }

  absl::Status ReadDefinition() {
    Definition definition;
    if (algorithm_.stages.empty() || words_.size() < 3 ||
        words_.size() > 3 + kMaxDims ||
        (words_[1] != "0" && words_[1] != "1") ||
        !absl::SimpleAtod(words_[2], &definition.flop) ||
        !(definition.flop >= 0)) {
      return Expected("a stage before it, and 0|1 FLOP EXTENT...");
    }
    definition.associative = words_[1] == "1";
    OPTRAIL_RETURN_IF_ERROR(ReadExtents(&definition.reductions));
    Stage& stage = algorithm_.stages.back();
    if (stage.definitions.empty() && !definition.reductions.empty()) {
      return Expected("no reductions in a stage's first def");
    }
    stage.definitions.push_back(std::move(definition));
    return absl::OkStatus();
  }

  absl::Status ReadAccess() {
    Access access;
    if (algorithm_.stages.empty() ||
        algorithm_.stages.back().definitions.empty() || words_.size() < 3 ||
        (words_[1] != "input" && words_[1] != "stage") ||
        !absl::SimpleAtoi(words_[2], &access.source) || access.source < 0) {
      return Expected("a def before it, and input|stage INDEX DIMENSION...");
    }
    Stage& stage = algorithm_.stages.back();
    Definition& definition = stage.definitions.back();
    access.of_input = words_[1] == "input";
    // The stage itself is the last: what reads itself is no read.
    const size_t sources = access.of_input ? algorithm_.inputs.size()
                                           : algorithm_.stages.size() - 1;
    if (static_cast<size_t>(access.source) >= sources) {
      return Expected("an earlier input or stage");
    }
    const Extents& source =
        access.of_input
            ? algorithm_.inputs[access.source]
            : static_cast<const Extents&>(algorithm_.stages[access.source]);
    if (words_.size() - 3 != source.extents.size()) {
      return Expected(absl::StrCat(source.extents.size(), " dimensions"));
    }
    const size_t loops = stage.extents.size() + definition.reductions.size();
    for (size_t i = 3; i < words_.size(); ++i) {
      AccessIndex index;
      if (words_[i] == "*") {
        index.affine = false;
        index.coefficients.assign(loops, 0);
      } else if (loops > 0 || words_[i] != "-") {
        for (const absl::string_view word : absl::StrSplit(words_[i], ',')) {
          int64_t coefficient;
          if (!absl::SimpleAtoi(word, &coefficient) ||
              coefficient > kMaxExtent || coefficient < -kMaxExtent) {
            return Expected("integers with commas, or *");
          }
          index.coefficients.push_back(coefficient);
        }
        if (index.coefficients.size() != loops) {
          return Expected(absl::StrCat(loops, " coefficients"));
        }
      }
      access.dims.push_back(std::move(index));
    }
    definition.reads.push_back(std::move(access));
    return absl::OkStatus();
  }

  absl::Status ReadOutputs() {
    for (size_t i = 1; i < words_.size(); ++i) {
      int output;
      if (!absl::SimpleAtoi(words_[i], &output) || output < 0 ||
          output >= static_cast<int>(algorithm_.stages.size()) ||
          absl::c_linear_search(algorithm_.outputs, output)) {
        return Expected("stages before it, each once");
      }
      algorithm_.outputs.push_back(output);
    }
    return absl::OkStatus();
  }

  const absl::string_view text_;
  int line_ = 0;
  std::vector<absl::string_view> words_;
  Algorithm algorithm_;
};

}  // namespace

bool Stage::HasReduction() const {
  for (const Definition& definition : definitions) {
    if (!definition.reductions.empty()) return true;
  }
  return false;
}

absl::StatusOr<Algorithm> ParseAlgorithm(absl::string_view text) {
  return TextReader(text).Read();
}

std::string Algorithm::ToText() const {
  std::string text;
  const auto append_extents = [&](absl::string_view kind, const Extents& of) {
    absl::StrAppend(&text, kind, " ", of.name, " ", of.element_bytes);
    for (const int64_t extent : of.extents) absl::StrAppend(&text, " ", extent);
    text += '\n';
  };
  for (const Extents& input : inputs) append_extents("input", input);
  for (const Stage& stage : stages) {
    append_extents("stage", stage);
    for (const Definition& definition : stage.definitions) {
      absl::StrAppend(&text, "def ", definition.associative ? 1 : 0, " ",
                      definition.flop);
      for (const int64_t extent : definition.reductions) {
        absl::StrAppend(&text, " ", extent);
      }
      text += '\n';
      for (const Access& access : definition.reads) {
        absl::StrAppend(&text, "read ", access.of_input ? "input" : "stage",
                        " ", access.source);
        for (const AccessIndex& index : access.dims) {
          absl::StrAppend(&text, " ",
                          !index.affine ? "*"
                          : index.coefficients.empty()
                              ? "-"
                              : absl::StrJoin(index.coefficients, ","));
        }
        text += '\n';
      }
    }
  }
  if (outputs != std::vector<int>{static_cast<int>(stages.size()) - 1}) {
    absl::StrAppend(&text, "outputs ", absl::StrJoin(outputs, " "), "\n");
  }
  return text;
}

Access Composed(const Access& outer, const Access& inner) {
  Access access = inner;
  const size_t loops =
      outer.dims.empty() ? 0 : outer.dims[0].coefficients.size();
  for (AccessIndex& index : access.dims) {
    const std::vector<int64_t> of_axes = index.coefficients;
    index.coefficients.assign(loops, 0);
    for (size_t axis = 0; axis < of_axes.size(); ++axis) {
      if (of_axes[axis] == 0) continue;
      const AccessIndex& through = outer.dims[axis];
      index.affine &= through.affine;
      for (size_t loop = 0; loop < loops; ++loop) {
        int64_t product;
        if (__builtin_mul_overflow(of_axes[axis], through.coefficients[loop],
                                   &product) ||
            __builtin_add_overflow(index.coefficients[loop], product,
                                   &index.coefficients[loop])) {
          index.affine = false;
        }
      }
    }
  }
  return access;
}

}  // namespace optrail::tuning
