#include "tuning/space/generate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/expression.h"
#include "tuning/space/space_parser.h"

namespace optrail::tuning {
namespace {

constexpr int kDefaultMaxInstantiations = 64;
constexpr double kMaxCombinations = 1 << 20;

bool IsCppKeyword(absl::string_view name) {
  static const auto& keywords = *new std::set<std::string, std::less<>>{
      "alignas",      "alignof",      "and",      "asm",       "auto",
      "bitand",       "bitor",        "bool",     "break",     "case",
      "catch",        "char",         "class",    "compl",     "const",
      "constexpr",    "continue",     "decltype", "default",   "delete",
      "do",           "dynamic_cast", "else",     "enum",      "explicit",
      "export",       "extern",       "float",    "for",       "friend",
      "goto",         "if",           "inline",   "long",      "mutable",
      "namespace",    "new",          "noexcept", "not",       "nullptr",
      "operator",     "or",           "private",  "protected", "public",
      "register",     "return",       "short",    "signed",    "sizeof",
      "static",       "struct",       "switch",   "template",  "this",
      "throw",        "try",          "typedef",  "typeid",    "typename",
      "union",        "unsigned",     "using",    "virtual",   "void",
      "volatile",     "while",        "xor",      "concept",   "requires",
      "static_assert"};
  return keywords.count(name) != 0;
}

// "two_pass" -> "TwoPass".
std::string CamelCase(absl::string_view name) {
  std::string camel;
  for (absl::string_view word :
       absl::StrSplit(name, absl::ByAnyChar("_.-"), absl::SkipEmpty())) {
    camel.push_back(absl::ascii_toupper(word[0]));
    camel.append(word.data() + 1, word.size() - 1);
  }
  return camel;
}

std::string FieldName(const ParsedKnob& knob) {
  return IsCppKeyword(knob.name) ? knob.name + "_" : knob.name;
}

std::string IntLiteral(int64_t value) {
  return value == std::numeric_limits<int64_t>::min() ? "INT64_MIN"
                                                      : absl::StrCat(value);
}

// The levels of a knob that no shape changes, as numbers for expressions.
std::vector<int64_t> FixedValues(const ParsedSpace& space,
                                 const ParsedKnob& knob) {
  if (knob.kind == ParsedKnob::kBoolean) return {0, 1};
  if (knob.kind == ParsedKnob::kInts) return knob.ints;
  std::vector<int64_t> values;
  Scope scope = space.scope;
  for (const std::string& variant : knob.variants) {
    values.push_back(scope.Intern(variant));
  }
  return values;
}

proto::KnobValue ValueAt(const ParsedKnob& knob, size_t level) {
  proto::KnobValue value;
  value.set_knob(knob.name);
  if (knob.kind == ParsedKnob::kBoolean) {
    value.set_bool_(level != 0);
  } else if (knob.kind == ParsedKnob::kInts) {
    value.set_int_(knob.ints[level]);
  } else {
    value.set_variant(knob.variants[level]);
  }
  return value;
}

// Parts of constraints that read only these knobs, and neither shape nor
// hardware.
std::vector<Expression> StaticConstraints(const ParsedSpace& space,
                                          uint64_t knobs) {
  std::vector<Expression> result;
  for (const ParsedExpression& constraint : space.constraints) {
    for (Expression& part : constraint.expr.Conjuncts()) {
      if ((part.knobs() & ~knobs) == 0 && part.Parameters().empty()) {
        result.push_back(std::move(part));
      }
    }
  }
  return result;
}

class HeaderWriter {
 public:
  HeaderWriter(const ParsedSpace& space, const GenerateOptions& options,
               const std::vector<proto::Config>& instantiations)
      : space_(space),
        options_(options),
        instantiations_(instantiations),
        struct_(CamelCase(options.name) + "Knobs"),
        macro_(absl::StrCat("OPTRAIL_", absl::AsciiStrToUpper(options.name))) {}

  absl::StatusOr<std::string> Write() {
    OPTRAIL_RETURN_IF_ERROR(CheckNames());
    const std::string guard = absl::StrCat(
        "OPTRAIL_GENERATED_",
        absl::AsciiStrToUpper(absl::StrReplaceAll(
            options_.header_path, {{"/", "_"}, {".", "_"}, {"-", "_"}})),
        "_");
    Line("// Generated from ", space_.filename, " (", space_.hash,
         "); do not edit.");
    Line("#ifndef ", guard);
    Line("#define ", guard);
    Line();
    Line("#include <cstdint>");
    Line();
    Line("#include \"absl/status/status.h\"");
    Line("#include \"absl/status/statusor.h\"");
    Line("#include \"absl/strings/str_cat.h\"");
    Line("#include \"tuning/proto/canonical.h\"");
    Line("#include \"tuning/proto/config.pb.h\"");
    Line();
    WriteMacros();
    Line("namespace ", options_.cpp_namespace, " {");
    Line();
    WriteStruct();
    WriteFrom();
    WriteIndex();
    Line("}  // namespace ", options_.cpp_namespace);
    Line();
    Line("#endif  // ", guard);
    return out_;
  }

 private:
  template <typename... Parts>
  void Line(const Parts&... parts) {
    absl::StrAppend(&out_, parts..., "\n");
  }

  absl::Status CheckNames() {
    for (const ParsedKnob& knob : space_.knobs) {
      std::map<std::string, std::string> seen;
      for (const std::string& variant : knob.variants) {
        const auto [it, inserted] = seen.emplace(CamelCase(variant), variant);
        if (!inserted) {
          return absl::InvalidArgumentError(
              absl::StrCat(knob.location, ": variants \"", it->second,
                           "\" and \"", variant, "\" of knob \"", knob.name,
                           "\" would both be called k", it->first, " in C++"));
        }
      }
      for (const ParsedKnob& other : space_.knobs) {
        if (knob.variants.empty() || FieldName(other) != CamelCase(knob.name)) {
          continue;
        }
        return absl::InvalidArgumentError(absl::StrCat(
            knob.location, ": the type of knob \"", knob.name,
            "\" and the field of knob \"", other.name,
            "\" would both be called ", CamelCase(knob.name), " in C++"));
      }
    }
    return absl::OkStatus();
  }

  std::string TypeOf(const ParsedKnob& knob) const {
    if (knob.kind == ParsedKnob::kBoolean) return "bool";
    return knob.kind == ParsedKnob::kVariants ? CamelCase(knob.name)
                                              : "int64_t";
  }

  std::string Literal(const ParsedKnob& knob,
                      const proto::KnobValue& value) const {
    switch (value.value_case()) {
      case proto::KnobValue::kInt:
        return IntLiteral(value.int_());
      case proto::KnobValue::kBool:
        return value.bool_() ? "true" : "false";
      default:
        return absl::StrCat(struct_, "::", CamelCase(knob.name), "::k",
                            CamelCase(value.variant()));
    }
  }

  const ParsedKnob& KnobOf(const proto::KnobValue& value) const {
    return *std::find_if(
        space_.knobs.begin(), space_.knobs.end(),
        [&](const ParsedKnob& k) { return k.name == value.knob(); });
  }

  void WriteMacros() {
    Line("// X(index, compile_time knobs in declared order...) for each ",
         "instantiation.");
    WriteList(absl::StrCat(macro_, "_INSTANTIATIONS"), 0, 1);
    Line("#define ", macro_, "_INSTANTIATION_COUNT ", instantiations_.size());
    Line();
    Line("// Those of one shard: ", macro_,
         "_INSTANTIATIONS_SHARD(OPTRAIL_SHARD, X).");
    for (int shard = 0; shard < options_.shards; ++shard) {
      WriteList(absl::StrCat(macro_, "_INSTANTIATIONS_SHARD_", shard), shard,
                options_.shards);
    }
    Line("#define ", macro_, "_SHARDS ", options_.shards);
    Line("#define ", macro_, "_INSTANTIATIONS_OF_SHARD_(shard, X) \\");
    Line("  ", macro_, "_INSTANTIATIONS_SHARD_##shard(X)");
    Line("#define ", macro_, "_INSTANTIATIONS_SHARD(shard, X) \\");
    Line("  ", macro_, "_INSTANTIATIONS_OF_SHARD_(shard, X)");
    Line();
  }

  void WriteList(const std::string& macro, int shard, int shards) {
    absl::StrAppend(&out_, "#define ", macro, "(X)");
    for (size_t i = shard; i < instantiations_.size(); i += shards) {
      absl::StrAppend(&out_, " \\\n  X(", i);
      for (const proto::KnobValue& value : instantiations_[i].set()) {
        absl::StrAppend(&out_, ", ", Literal(KnobOf(value), value));
      }
      absl::StrAppend(&out_, ")");
    }
    Line();
  }

  void WriteStruct() {
    Line("struct ", struct_, " {");
    for (const ParsedKnob& knob : space_.knobs) {
      if (knob.kind != ParsedKnob::kVariants) continue;
      Line("  enum class ", CamelCase(knob.name), " {");
      for (const std::string& variant : knob.variants) {
        Line("    k", CamelCase(variant), ",");
      }
      Line("  };");
    }
    for (const ParsedKnob& knob : space_.knobs) {
      if (!knob.doc.empty()) {
        Line("  // ",
             absl::StrReplaceAll(knob.doc, {{"\n", " "}, {"\\", "/"}}));
      }
      Line("  ", TypeOf(knob), " ", FieldName(knob), "{};");
    }
    Line();
    Line("  // InvalidArgument for an unknown, missing or repeated knob and ",
         "for a value");
    Line("  // of the wrong type. Does not look at ranges or constraints.");
    Line("  static absl::StatusOr<", struct_,
         "> From(const ::optrail::proto::Config& config);");
    Line();
    Line("  // The number of these knobs' instantiation; -1 if there is none.");
    Line("  int InstantiationIndex() const;");
    Line("};");
    Line();
  }

  void WriteFrom() {
    Line("inline absl::StatusOr<", struct_, "> ", struct_,
         "::From(const ::optrail::proto::Config& config) {");
    Line("  ", struct_, " knobs;");
    Line("  const auto wrong = [](const ::optrail::proto::KnobValue& value,");
    Line("                        const char* expected) {");
    Line("    return absl::InvalidArgumentError(absl::StrCat(");
    Line("        \"knob \\\"\", value.knob(), \"\\\" of ", options_.name,
         " is \",");
    Line(
        "        ::optrail::tuning::CanonicalText(value), \", expected \", "
        "expected));");
    Line("  };");
    Line("  bool given[", space_.knobs.size(), "] = {};");
    Line("  for (const ::optrail::proto::KnobValue& value : config.set()) {");
    Line("    int knob = -1;");
    for (size_t i = 0; i < space_.knobs.size(); ++i) {
      WriteCase(space_.knobs[i], i);
    }
    Line("    if (knob < 0) return wrong(value, \"no such knob\");");
    Line("    if (given[knob]) return wrong(value, \"to be given once\");");
    Line("    given[knob] = true;");
    Line("  }");
    for (size_t i = 0; i < space_.knobs.size(); ++i) {
      Line("  if (!given[", i, "]) {");
      Line("    return absl::InvalidArgumentError(\"the config of ",
           options_.name, " lacks knob \\\"", space_.knobs[i].name, "\\\"\");");
      Line("  }");
    }
    Line("  return knobs;");
    Line("}");
    Line();
  }

  void WriteCase(const ParsedKnob& knob, size_t index) {
    const std::string field = FieldName(knob);
    Line("    if (value.knob() == \"", knob.name, "\") {");
    Line("      knob = ", index, ";");
    if (knob.kind == ParsedKnob::kVariants) {
      absl::string_view branch = "      if";
      for (const std::string& variant : knob.variants) {
        Line(branch, " (value.variant() == \"", variant, "\") {");
        Line("        knobs.", field, " = ", CamelCase(knob.name), "::k",
             CamelCase(variant), ";");
        branch = "      } else if";
      }
      Line("      } else {");
      Line("        return wrong(value, \"", ExpectedValue(knob), "\");");
      Line("      }");
    } else {
      const bool is_bool = knob.kind == ParsedKnob::kBoolean;
      Line("      if (!value.has_", is_bool ? "bool_" : "int_", "()) {");
      Line("        return wrong(value, \"",
           is_bool ? "true or false" : "an integer", "\");");
      Line("      }");
      Line("      knobs.", field, " = value.", is_bool ? "bool_" : "int_",
           "();");
    }
    Line("    }");
  }

  void WriteIndex() {
    std::vector<std::string> parameters = {"index"};
    std::vector<std::string> tests;
    for (const ParsedKnob& knob : space_.knobs) {
      if (!knob.compile_time) continue;
      const std::string parameter = absl::StrCat("v", parameters.size());
      parameters.push_back(parameter);
      tests.push_back(
          absl::StrCat("this->", FieldName(knob), " == ", parameter));
    }
    if (tests.empty()) tests.push_back("true");
    Line("inline int ", struct_, "::InstantiationIndex() const {");
    Line("#define ", macro_, "_INDEX_(", absl::StrJoin(parameters, ", "),
         ") \\");
    Line("  if (", absl::StrJoin(tests, " && "), ") return index;");
    Line("  ", macro_, "_INSTANTIATIONS(", macro_, "_INDEX_)");
    Line("#undef ", macro_, "_INDEX_");
    Line("  return -1;");
    Line("}");
    Line();
  }

  const ParsedSpace& space_;
  const GenerateOptions& options_;
  const std::vector<proto::Config>& instantiations_;
  const std::string struct_;
  const std::string macro_;
  std::string out_;
};

}  // namespace

absl::StatusOr<std::vector<proto::Config>> Instantiations(const Space& space) {
  const ParsedSpace& parsed = space.parsed();
  std::vector<int> knobs;
  std::vector<std::vector<int64_t>> values;
  std::vector<std::string> sizes;
  uint64_t mask = 0;
  double combinations = 1;
  for (size_t i = 0; i < parsed.knobs.size(); ++i) {
    const ParsedKnob& knob = parsed.knobs[i];
    if (!knob.compile_time) continue;
    if (!knob.dim.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(knob.location, ": knob \"", knob.name,
                       "\" is compile_time, but its values depend on dim.",
                       knob.dim, "; expected ints, pow2, boolean or variants"));
    }
    knobs.push_back(static_cast<int>(i));
    values.push_back(FixedValues(parsed, knob));
    sizes.push_back(absl::StrCat(knob.name, " (", values.back().size(), ")"));
    mask |= uint64_t{1} << i;
    combinations *= static_cast<double>(values.back().size());
  }
  const int limit = parsed.proto.max_instantiations() > 0
                        ? parsed.proto.max_instantiations()
                        : kDefaultMaxInstantiations;
  if (combinations > kMaxCombinations) {
    return absl::InvalidArgumentError(
        absl::StrCat(parsed.filename, ": the compile_time knobs ",
                     absl::StrJoin(sizes, ", "), " have ", combinations,
                     " combinations, too many to look at"));
  }
  Frame frame(static_cast<int>(parsed.knobs.size()));
  std::vector<SlotProgram> constraints;
  for (const Expression& constraint : StaticConstraints(parsed, mask)) {
    constraints.push_back(frame.Compile(
        constraint.Bind([](absl::string_view) { return int64_t{0}; })));
  }
  std::vector<int64_t> slots = frame.slots();
  std::vector<proto::Config> result;
  std::vector<size_t> levels(knobs.size(), 0);
  int64_t count = 0;
  for (bool more = true; more;) {
    for (size_t k = 0; k < knobs.size(); ++k) {
      slots[knobs[k]] = values[k][levels[k]];
    }
    const bool valid = std::all_of(constraints.begin(), constraints.end(),
                                   [&](const SlotProgram& program) {
                                     return program.Holds(slots.data());
                                   });
    if (valid && ++count <= limit) {
      proto::Config config;
      for (size_t k = 0; k < knobs.size(); ++k) {
        *config.add_set() = ValueAt(parsed.knobs[knobs[k]], levels[k]);
      }
      result.push_back(std::move(config));
    }
    size_t k = knobs.size();
    while (k > 0 && ++levels[k - 1] == values[k - 1].size()) levels[--k] = 0;
    more = k > 0;
  }
  if (count > limit) {
    return absl::InvalidArgumentError(absl::StrCat(
        parsed.filename, ": the compile_time knobs ",
        absl::StrJoin(sizes, ", "), " ask for ", count,
        " instantiations, expected at most ", limit,
        "; drop values, add constraints over these knobs alone, or raise "
        "max_instantiations"));
  }
  if (count == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        parsed.filename, ": the constraints leave no combination of the ",
        "compile_time knobs ", absl::StrJoin(sizes, ", ")));
  }
  return result;
}

absl::StatusOr<std::string> GenerateKnobsHeader(
    const Space& space, const GenerateOptions& options) {
  if (!IsKnobName(options.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("operator name \"", options.name,
                     "\": expected [A-Za-z_][A-Za-z0-9_]*"));
  }
  if (options.shards < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("shards is ", options.shards, ", expected at least 1"));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<proto::Config> instantiations,
                           Instantiations(space));
  return HeaderWriter(space.parsed(), options, instantiations).Write();
}

}  // namespace optrail::tuning
