#ifndef OPTRAIL_SUITES_GRAPH_PEER_H_
#define OPTRAIL_SUITES_GRAPH_PEER_H_

// Peer is another program that computes a model, ONNX Runtime for one, whose
// calls are interleaved with our own:
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const std::unique_ptr<Peer> peer,
//       Peer::Start("node suites/graph/onnxruntime_peer.mjs /tmp/bert_large"));
//   OPTRAIL_ASSIGN_OR_RETURN(const PairedTimes times,
//                            TimePairs(*peer, *ours, options));
//
// Messages are frames (base/process/subprocess.h: a length in 4 bytes,
// little-endian, and so many bytes) over its standard input and output:
//
//   it says first    "ready NAME"   or "error TEXT"
//   "run N"          N calls: "WALL_NS PROCESSOR_NS", both of all calls
//   "output I"       the bytes of output I of the last call, dense
//
// It ends with its input. What it prints for people goes to standard error.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/process/subprocess.h"
#include "ops/core/device.h"

namespace optrail::suites {

class Peer : public ops::Timer {
 public:
  // Through a shell. It has ten minutes to read its model. Unavailable says
  // what it answered in place of "ready".
  static absl::StatusOr<std::unique_ptr<Peer>> Start(
      const std::string& command);

  const std::string& name() const { return name_; }
  absl::StatusOr<std::string> Output(int i);

  absl::Status Prepare(int64_t calls) override;
  absl::StatusOr<int64_t> TimeNs() override;
  absl::optional<int64_t> WorkedNs() const override { return worked_ns_; }

 private:
  Peer(std::string command, std::unique_ptr<Subprocess> process)
      : command_(std::move(command)), process_(std::move(process)) {}

  absl::StatusOr<std::string> Ask(const std::string& message);

  const std::string command_;
  const std::unique_ptr<Subprocess> process_;
  std::string name_;
  int64_t calls_ = 1;
  int64_t worked_ns_ = 0;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_PEER_H_
