// A host with a Protobuf of its own, which even has a message in a file that
// liboptrail's implementation has, too. Both work, one after the other.

#include <google/protobuf/struct.pb.h>
#include <optrail.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "tuning/proto/config.pb.h"

namespace {

bool HostsProtobufWorks() {
  google::protobuf::Struct record;
  (*record.mutable_fields())["answer"].set_number_value(42);
  hosts::Own own;
  own.set_text("of the host");
  google::protobuf::Struct read;
  hosts::Own own_read;
  return read.ParseFromString(record.SerializeAsString()) &&
         read.fields().at("answer").number_value() == 42 &&
         own_read.ParseFromString(own.SerializeAsString()) &&
         own_read.text() == "of the host" &&
         own.GetDescriptor()->file()->name() == "tuning/proto/config.proto" &&
         own.DebugString() == "text: \"of the host\"\n";
}

bool OptrailWorks(const char* path) {
  optrail_store* store = nullptr;
  optrail_plan* plan = nullptr;
  optrail_problem problem = OPTRAIL_PROBLEM_INIT;
  problem.op = "softmax";
  problem.shape = "rows=1,cols=4/f32";
  float x[] = {1, 1, 1, 1}, y[4];
  void* operands[] = {x, y};
  optrail_call call = OPTRAIL_CALL_INIT;
  call.operands = operands;
  call.operand_count = 2;
  const bool ran =
      optrail_store_open(nullptr, &store) == OPTRAIL_OK &&
      optrail_plan_create(store, &problem, nullptr, &plan) == OPTRAIL_OK &&
      optrail_run(plan, &call) == OPTRAIL_OK && y[3] > .2499f && y[3] < .2501f;
  // A file that cannot be parsed: its message is made by Protobuf, too.
  optrail_store* broken = nullptr;
  const bool refused =
      optrail_store_open(path, &broken) == OPTRAIL_INVALID_ARGUMENT &&
      std::strstr(optrail_message(), path) != nullptr;
  if (!ran || !refused) std::fprintf(stderr, "%s\n", optrail_message());
  optrail_plan_destroy(plan);
  optrail_store_close(store);
  return ran && refused;
}

}  // namespace

int main(int, char** argv) {
  const bool right = HostsProtobufWorks() && OptrailWorks(argv[1]) &&
                     HostsProtobufWorks() && OptrailWorks(argv[1]);
  google::protobuf::ShutdownProtobufLibrary();
  if (!right || !OptrailWorks(argv[1])) return 1;
  std::printf("both Protobufs work\n");
  return 0;
}
