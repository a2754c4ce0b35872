#include "base/text/textproto.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/text/closest.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/io/tokenizer.h"

namespace optrail {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

constexpr size_t kMaxErrors = 5;

// Protobuf's tokenizer moves to the next multiple of this at a tab.
constexpr int kTabWidth = 8;

// A place in a text, from 0.
struct Position {
  int line = 0;
  int column = 0;
};

Position PositionOf(absl::string_view text, size_t offset) {
  Position position;
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') {
      ++position.line;
      position.column = 0;
    } else {
      position.column +=
          c == '\t' ? kTabWidth - position.column % kTabWidth : 1;
    }
  }
  return position;
}

// The last place of `word` in `text` that is not behind `end`. Protobuf reports
// an unknown field at the token after its name.
Position LastBefore(absl::string_view text, absl::string_view word,
                    Position end) {
  size_t offset = 0;
  for (int line = 0; line < end.line && offset != absl::string_view::npos;
       ++line) {
    offset = text.find('\n', offset);
    if (offset != absl::string_view::npos) ++offset;
  }
  if (offset == absl::string_view::npos) return end;
  const size_t found = text.rfind(word, offset + end.column);
  return found == absl::string_view::npos ? end : PositionOf(text, found);
}

// The text between the `index`th pair of quotation marks, from 0; "" if there
// are fewer.
absl::string_view Quoted(absl::string_view message, size_t index) {
  const std::vector<absl::string_view> parts = absl::StrSplit(message, '"');
  return 2 * index + 1 < parts.size() ? parts[2 * index + 1] : "";
}

std::vector<std::string> FieldNames(const Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->options().deprecated()) continue;
    names.push_back(type.field(i)->name());
  }
  return names;
}

// The enum of a field of this name in `type` or in messages below it; null if
// there is none, or several enums.
const EnumDescriptor* EnumOf(const Descriptor& type, absl::string_view field) {
  std::set<const Descriptor*> seen = {&type};
  std::vector<const Descriptor*> open = {&type};
  const EnumDescriptor* found = nullptr;
  while (!open.empty()) {
    const Descriptor* one = open.back();
    open.pop_back();
    for (int i = 0; i < one->field_count(); ++i) {
      const FieldDescriptor* member = one->field(i);
      if (member->message_type() != nullptr) {
        if (seen.insert(member->message_type()).second) {
          open.push_back(member->message_type());
        }
      } else if (member->enum_type() != nullptr && member->name() == field) {
        if (found != nullptr && found != member->enum_type()) return nullptr;
        found = member->enum_type();
      }
    }
  }
  return found;
}

std::vector<std::string> ValueNames(const EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    // Zero means that nothing is said.
    if (absl::EndsWith(type.value(i)->name(), "UNSPECIFIED")) continue;
    names.push_back(type.value(i)->name());
  }
  return names;
}

// Says what Protobuf's messages leave out: the names that are expected.
class ErrorCollector : public google::protobuf::io::ErrorCollector {
 public:
  ErrorCollector(absl::string_view text, absl::string_view filename,
                 const Descriptor& type)
      : text_(text), filename_(filename), type_(type) {}

  void AddError(int line, int column, const std::string& message) override {
    Position position = {line, column};
    const std::string improved = Improved(message, &position);
    std::string where(filename_);
    // -1 is no place at all.
    if (line >= 0) {
      absl::StrAppend(&where, ":", position.line + 1, ":", position.column + 1);
    }
    errors_.push_back(absl::StrCat(where, ": ", improved));
  }
  void AddWarning(int, int, const std::string&) override {}

  absl::Status ToStatus() const {
    const size_t shown = std::min(errors_.size(), kMaxErrors);
    std::string text = absl::StrJoin(
        errors_.begin(), errors_.begin() + static_cast<int64_t>(shown), "\n");
    if (errors_.empty()) text = absl::StrCat(filename_, ": can't be parsed");
    if (errors_.size() > shown) {
      absl::StrAppend(&text, "\nand ", errors_.size() - shown, " more errors");
    }
    return absl::InvalidArgumentError(text);
  }

 private:
  std::string Improved(const std::string& message, Position* position) const {
    // Message type "optrail.proto.Space" has no field named "nmae".
    if (absl::StrContains(message, "has no field named")) {
      const Descriptor* type = type_.file()->pool()->FindMessageTypeByName(
          std::string(Quoted(message, 0)));
      const absl::string_view typed = Quoted(message, 1);
      if (type == nullptr || typed.empty()) return message;
      if (position->line >= 0) *position = LastBefore(text_, typed, *position);
      return absl::StrCat("unknown field \"", typed, "\" of ", type->name(),
                          ", ", ExpectedOneOf(typed, FieldNames(*type)));
    }
    // Unknown enumeration value of "FAST" for field "direction".
    if (absl::StartsWith(message, "Unknown enumeration value of")) {
      const absl::string_view typed = Quoted(message, 0);
      const absl::string_view field = Quoted(message, 1);
      const EnumDescriptor* type = EnumOf(type_, field);
      if (type == nullptr) return message;
      if (position->line >= 0) *position = LastBefore(text_, typed, *position);
      return absl::StrCat("unknown value \"", typed, "\" of field ", field,
                          ", ", ExpectedOneOf(typed, ValueNames(*type)));
    }
    return message;
  }

  const absl::string_view text_;
  const absl::string_view filename_;
  const Descriptor& type_;
  std::vector<std::string> errors_;
};

}  // namespace

TextProtoPlace TextProtoPlace::Child(absl::string_view name, int index) const {
  OPTRAIL_CHECK(descriptor_ != nullptr) << name << " of what is no message";
  const FieldDescriptor* field =
      descriptor_->FindFieldByName(std::string(name));
  OPTRAIL_CHECK(field != nullptr)
      << descriptor_->full_name() << " has no field " << name;
  OPTRAIL_CHECK(field->is_repeated() == (index >= 0))
      << field->full_name() << " with index " << index;
  TextProtoPlace child = *this;
  child.descriptor_ = field->message_type();
  child.tree_ = nullptr;
  if (tree_ == nullptr) return child;
  const TextFormat::ParseLocation location = tree_->GetLocation(field, index);
  if (location.line < 0) return child;
  child.line_ = location.line + 1;
  child.column_ = location.column + 1;
  if (child.descriptor_ != nullptr) {
    child.tree_ = tree_->GetTreeForNested(field, index);
  }
  return child;
}

std::string TextProtoPlace::ToString() const {
  if (line_ == 0) return *filename_;
  return absl::StrCat(*filename_, ":", line_, ":", column_);
}

absl::Status TextProtoPlace::Error(absl::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat(ToString(), ": ", message));
}

absl::Status ParseTextProtoInto(absl::string_view text,
                                absl::string_view filename,
                                google::protobuf::Message* message,
                                TextFormat::ParseInfoTree* tree) {
  ErrorCollector errors(text, filename, *message->GetDescriptor());
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  if (tree != nullptr) parser.WriteLocationsTo(tree);
  if (!parser.ParseFromString(std::string(text), message)) {
    return errors.ToStatus();
  }
  return absl::OkStatus();
}

std::string PrintTextProto(const google::protobuf::Message& message) {
  TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  std::string text;
  OPTRAIL_CHECK(printer.PrintToString(message, &text)) << message.GetTypeName();
  return text;
}

}  // namespace optrail
