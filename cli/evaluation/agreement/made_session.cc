#include "cli/evaluation/agreement/made_session.h"

#include <cmath>

#include "cli/evaluation/agreement/made_run.h"

namespace optrail::agreement {

void SetTile(int64_t value, proto::Config* config) {
  proto::KnobValue* knob = config->add_set();
  knob->set_knob("tile");
  knob->set_int_(value);
}

proto::Session BaseSession(int warm, int measured) {
  proto::Session session;
  session.set_started_unix_ns(kStartNs);
  session.set_session_id(kMadeSessionId);
  session.set_elapsed_ns(100 * kSecondNs);
  session.set_sittings(1);
  session.set_strategy("random");
  session.set_stop_reason(proto::TRIALS_SPENT);
  proto::Task* task = session.mutable_task();
  task->set_operator_name("matmul");
  task->set_device_kind(proto::CPU);
  task->set_hardware_id("amd-epyc-zen4-2c");
  task->set_threads(1);
  task->set_cache_mode(proto::HOT);
  task->set_kernel_id("0123456789abcdef");
  proto::Dim* dim = task->mutable_shape()->add_dims();
  dim->set_name("m");
  dim->set_value(64);
  task->mutable_shape()->add_data_types(proto::F32);
  session.mutable_hardware()->set_id("amd-epyc-zen4-2c");
  session.set_space_textproto(
      "knob { name: \"tile\" ints: [1, 2, 4, 8, 16, 32, 64, 128, 256] }");
  session.set_warm_start_trial_count(warm);
  for (int i = 0; i < warm + measured; ++i) {
    proto::Trial* trial = session.add_trials();
    SetTile(int64_t{1} << (i % 9), trial->mutable_config());
    trial->set_outcome(proto::OK);
    trial->set_time_ns(1000 + 7 * ((i * 31) % 40));
    if (i < warm) trial->set_session_id("20251231T000000Z-00000000abce");
    trial->set_elapsed_ns(kSecondNs / 10);
  }
  return session;
}

void AddFinalist(proto::Session* session, int64_t tile, double first_ns,
                 double verified_ns, bool is_default) {
  proto::Finalist* finalist = session->add_finalists();
  SetTile(tile, finalist->mutable_config());
  finalist->set_first_time_ns(first_ns);
  finalist->set_time_ns(verified_ns);
  finalist->set_outcome(proto::OK);
  finalist->set_is_default(is_default);
}

void AddProof(proto::Session* session, int64_t tile, double gain) {
  proto::Proof* proof = session->mutable_proof();
  proof->set_metric("time");
  proof->set_gain(gain);
  proof->set_gain_low(gain - .015);
  proof->set_gain_high(gain + .015);
  proof->set_confidence(.95);
  proof->set_rounds(42);
  proof->set_claimed(gain > .015);
  proof->set_end(proto::PROOF_PRECISE);
  SetTile(tile, proof->mutable_candidate());
  SetTile(proof->claimed() ? tile : 1, session->mutable_winner());
}

proto::Session MakeSession(Rng* rng) {
  const int warm =
      rng->UniformInt(2) ? 0 : static_cast<int>(rng->UniformInt(60));
  const int measured = 10 + static_cast<int>(rng->UniformInt(100));
  proto::Session session = BaseSession(warm, measured);
  for (int i = warm; i < warm + measured; ++i) {
    proto::Trial* trial = session.mutable_trials(i);
    trial->set_time_ns(1000 * std::exp(.3 * rng->UniformReal()));
    if (rng->UniformInt(12) > 0) continue;
    trial->set_outcome(proto::CRASHED);
    trial->clear_time_ns();
  }
  const auto near = [&](double ns) { return ns * (1 + .05 * rng->Gaussian()); };
  AddFinalist(&session, 1, near(1100), near(1100), /*is_default=*/true);
  AddFinalist(&session, 8, near(1000), near(1010), false);
  AddFinalist(&session, 16, near(1000), near(1010), false);
  SetTile(8, session.mutable_winner());
  if (rng->UniformInt(4) > 0) {
    session.clear_winner();
    AddProof(&session, 8, -.02 + .3 * rng->UniformReal());
  }
  return session;
}

}  // namespace optrail::agreement
