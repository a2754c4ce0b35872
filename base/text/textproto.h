#ifndef OPTRAIL_BASE_TEXT_TEXTPROTO_H_
#define OPTRAIL_BASE_TEXT_TEXTPROTO_H_

// Text protobufs that people write, with errors that lead them to the place.
//
//   OPTRAIL_ASSIGN_OR_RETURN(auto space,
//                            ParseTextProto<proto::Space>(text, path));
//   for (int i = 0; i < space.message.knob_size(); ++i) {
//     if (space.message.knob(i).name().empty()) {
//       return space.root().Child("knob", i).Error("knob without a name");
//     }                                 // softmax.space.textproto:3:1: knob
//     ...
//   }

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace optrail {

// A place in a parsed text: a message or field and where it stands.
class TextProtoPlace {
 public:
  // The field `name` (or its element `index`, for a repeated one) of this
  // message. Where the text lacks it, the result stands where this one does.
  // `name` must be a field of the message's type.
  TextProtoPlace Child(absl::string_view name, int index = -1) const;

  // From 1; 0 where the place is the whole file.
  int line() const { return line_; }
  int column() const { return column_; }
  // "file:line:column", or "file" for the whole file.
  std::string ToString() const;
  // InvalidArgument "file:line:column: message".
  absl::Status Error(absl::string_view message) const;

 private:
  template <typename T>
  friend struct ParsedTextProto;
  TextProtoPlace(std::shared_ptr<const std::string> filename,
                 const google::protobuf::Descriptor* descriptor,
                 const google::protobuf::TextFormat::ParseInfoTree* tree)
      : filename_(std::move(filename)), descriptor_(descriptor), tree_(tree) {}

  std::shared_ptr<const std::string> filename_;
  const google::protobuf::Descriptor* descriptor_;  // null: not a message
  const google::protobuf::TextFormat::ParseInfoTree* tree_;  // null: no details
  int line_ = 0;
  int column_ = 0;
};

// A message and where its fields stand. Places must not outlive it.
template <typename T>
struct ParsedTextProto {
  T message;
  std::shared_ptr<const std::string> filename;
  std::shared_ptr<google::protobuf::TextFormat::ParseInfoTree> tree;

  TextProtoPlace root() const {
    return TextProtoPlace(filename, T::descriptor(), tree.get());
  }
};

// Parses `text` into `message`. InvalidArgument with one
// "file:line:column: message" per line, the first few, for everything wrong.
absl::Status ParseTextProtoInto(
    absl::string_view text, absl::string_view filename,
    google::protobuf::Message* message,
    google::protobuf::TextFormat::ParseInfoTree* tree = nullptr);

template <typename T>
absl::StatusOr<ParsedTextProto<T>> ParseTextProto(absl::string_view text,
                                                  absl::string_view filename) {
  ParsedTextProto<T> parsed;
  parsed.filename = std::make_shared<const std::string>(filename);
  parsed.tree = std::make_shared<google::protobuf::TextFormat::ParseInfoTree>();
  const absl::Status status =
      ParseTextProtoInto(text, filename, &parsed.message, parsed.tree.get());
  if (!status.ok()) return status;
  return parsed;
}

// The same text for the same message, always: fields by number, maps by key,
// UTF-8 readable. Ends with a newline unless the message is empty.
std::string PrintTextProto(const google::protobuf::Message& message);

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_TEXTPROTO_H_
