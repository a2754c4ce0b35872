#include "base/text/proto_utf8.h"

#include <string>
#include <vector>

#include "base/text/utf8.h"
#include "google/protobuf/descriptor.h"

namespace optrail {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// The fields that are set and can hold text.
std::vector<const FieldDescriptor*> FieldsWithText(const Message& message) {
  std::vector<const FieldDescriptor*> fields, with_text;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->type() == FieldDescriptor::TYPE_STRING ||
        field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      with_text.push_back(field);
    }
  }
  return with_text;
}

}  // namespace

bool HasInvalidUtf8(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::string scratch;
  for (const FieldDescriptor* field : FieldsWithText(message)) {
    const bool is_text = field->type() == FieldDescriptor::TYPE_STRING;
    const int count =
        field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (is_text) {
        const std::string& text =
            field->is_repeated()
                ? reflection.GetRepeatedStringReference(message, field, i,
                                                        &scratch)
                : reflection.GetStringReference(message, field, &scratch);
        if (!IsValidUtf8(text)) return true;
      } else if (HasInvalidUtf8(
                     field->is_repeated()
                         ? reflection.GetRepeatedMessage(message, field, i)
                         : reflection.GetMessage(message, field))) {
        return true;
      }
    }
  }
  return false;
}

void ReplaceInvalidUtf8In(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  for (const FieldDescriptor* field : FieldsWithText(*message)) {
    const bool is_text = field->type() == FieldDescriptor::TYPE_STRING;
    const int count =
        field->is_repeated() ? reflection.FieldSize(*message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (is_text && field->is_repeated()) {
        reflection.SetRepeatedString(
            message, field, i,
            ReplaceInvalidUtf8(
                reflection.GetRepeatedString(*message, field, i)));
      } else if (is_text) {
        reflection.SetString(
            message, field,
            ReplaceInvalidUtf8(reflection.GetString(*message, field)));
      } else {
        ReplaceInvalidUtf8In(
            field->is_repeated()
                ? reflection.MutableRepeatedMessage(message, field, i)
                : reflection.MutableMessage(message, field));
      }
    }
  }
}

}  // namespace optrail
