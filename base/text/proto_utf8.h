#ifndef OPTRAIL_BASE_TEXT_PROTO_UTF8_H_
#define OPTRAIL_BASE_TEXT_PROTO_UTF8_H_

// Protobuf writes a string field that is no UTF-8, and then refuses to read it:
// the whole message is lost over one byte of a branch's name. Before a message
// is stored:
//
//   if (HasInvalidUtf8(run)) ReplaceInvalidUtf8In(&run);
//
// It knows no unknown fields, whose contents nobody checks either, and leaves
// `bytes` alone.

#include "google/protobuf/message.h"

namespace optrail {

bool HasInvalidUtf8(const google::protobuf::Message& message);

// What is no UTF-8 becomes U+FFFD, in the message and all within it.
void ReplaceInvalidUtf8In(google::protobuf::Message* message);

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_PROTO_UTF8_H_
