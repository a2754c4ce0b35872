#include "base/textproto.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"

namespace optrail {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

constexpr size_t kMaxErrors = 5;

// Protobuf counts lines and columns from 0; -1 is no place at all.
class ErrorCollector : public google::protobuf::io::ErrorCollector {
 public:
  explicit ErrorCollector(absl::string_view filename) : filename_(filename) {}

  void AddError(int line, int column, const std::string& message) override {
    std::string where(filename_);
    if (line >= 0) absl::StrAppend(&where, ":", line + 1, ":", column + 1);
    errors_.push_back(absl::StrCat(where, ": ", message));
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
  const absl::string_view filename_;
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
  ErrorCollector errors(filename);
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
