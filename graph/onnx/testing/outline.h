#ifndef OPTRAIL_GRAPH_ONNX_TESTING_OUTLINE_H_
#define OPTRAIL_GRAPH_ONNX_TESTING_OUTLINE_H_

// Outline makes functions of a model's own out of its nodes, for tests and the
// fuzzer of the inliner: what the model computes stays.
//
//   Rng rng(7);
//   onnx::ModelProto outlined = model;
//   for (int i = 0; i < 8; ++i) Outline(outlined, rng);
//   ... both give the same outputs ...
//
// Calls nest (nodes of a function move into another one), names of the model
// stand in functions for other things, attributes become the call's or
// defaults, inputs are absent, outputs unwanted, and a function is called
// twice.

#include "base/random.h"

#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#include "onnx/onnx_pb.h"

namespace optrail::graph {

// Moves one to four nodes that follow each other in the model's graph, in a
// graph inside of it or in a function, to a new function and calls it there.
// False, and nothing changes, where there is nothing that can move: nodes with
// graphs inside stay, and so do nodes of a list that is in no order.
bool Outline(onnx::ModelProto& model, Rng& rng);

// Changes something about functions and calls, after which the model may mean
// something else or nothing: a function calls any other one or itself, names
// and attributes are exchanged, inputs and attributes go.
void Disturb(onnx::ModelProto& model, Rng& rng);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_ONNX_TESTING_OUTLINE_H_
