// The page of a certificate (certificate.h).

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "base/text/html_page.h"
#include "base/text/json.h"
#include "carbon/certificate.h"
#include "carbon/certified_saving.h"
#include "nlohmann/json.hpp"

namespace optrail::carbon {
namespace {

using Json = nlohmann::json;

std::string Show(const Json& value) {
  if (value.is_string()) return EscapeHtml(value.get<std::string>());
  if (value.is_number_float()) {
    return absl::StrFormat("%.6g", value.get<double>());
  }
  return EscapeHtml(value.dump());
}

// Numbers stand to the right in one line, text wraps.
std::string Row(const std::string& what, const Json& base,
                const Json& candidate) {
  const char* const cell = base.is_number() ? "<td class=\"n\">" : "<td>";
  return absl::StrCat("<tr><th scope=\"row\">", what, "</th>", cell, Show(base),
                      "</td>", cell, Show(candidate), "</td></tr>\n");
}

std::string Sides(const Json& json) {
  const Json& base = json.at("base");
  const Json& candidate = json.at("candidate");
  std::string html = absl::StrCat(
      "<table><caption>For ", Show(json.at("functional_unit")),
      "</caption><tr><th scope=\"col\">quantity</th><th scope=\"col\">base</th>"
      "<th scope=\"col\">candidate</th></tr>\n");
  const std::pair<const char*, const char*> fields[] = {
      {"run", "run"},
      {"commit", "commit"},
      {"uncommitted_changes", "changes that the commit lacks"},
      {"hardware", "hardware"},
      {"started", "measured"},
      {"joules_per_unit", "energy, J"},
      {"seconds_per_unit", "time, s"},
      {"E_kwh", "E, kWh, with the building's share (PUE)"},
      {"I_gco2e_per_kwh", "I, gCO2e/kWh"},
      {"M_gco2e", "M, gCO2e"},
      {"sci_gco2e_per_unit", "SCI, gCO2e"},
      {"sci_low", "SCI, 95% from"},
      {"sci_high", "SCI, 95% to"},
      {"record_sha256", "SHA-256 of the record"},
  };
  for (const auto& [field, title] : fields) {
    // A side says so only where there were some.
    if (absl::string_view(field) == "uncommitted_changes") {
      if (!base.contains(field) && !candidate.contains(field)) continue;
      const auto text = [&](const Json& side) {
        return Json(side.contains(field) ? "yes" : "no");
      };
      absl::StrAppend(&html, Row(title, text(base), text(candidate)));
      continue;
    }
    absl::StrAppend(&html, Row(title, base.at(field), candidate.at(field)));
  }
  return html + "</table>\n";
}

std::string Benchmarks(const Json& json) {
  std::string html =
      "<table><caption>Energy of each benchmark</caption><tr>"
      "<th scope=\"col\">side</th><th scope=\"col\">benchmark</th>"
      "<th scope=\"col\" class=\"n\">calls</th>"
      "<th scope=\"col\" class=\"n\">J a call</th>"
      "<th scope=\"col\" class=\"n\">&plusmn;</th>"
      "<th scope=\"col\">method</th></tr>\n";
  for (const char* side : {"base", "candidate"}) {
    for (const Json& one : json.at(side).at("benchmarks")) {
      absl::StrAppend(
          &html, "<tr><td class=\"k\">", side, "</td><td>",
          Show(one.at("benchmark")),
          one.contains("variant")
              ? absl::StrCat(", ", Show(one.at("variant")), " of the layer ",
                             Show(one.at("layer")))
              : "",
          "</td><td class=\"n\">", Show(one.at("calls_per_unit")),
          "</td><td class=\"n\">", Show(one.at("joules_per_call")),
          "</td><td class=\"n\">",
          absl::StrFormat("%.1f%%", 100 * one.at("uncertainty").get<double>()),
          "</td><td>", Show(one.at("method")), "</td></tr>\n");
    }
  }
  return html + "</table>\n";
}

std::string Inputs(const Json& inputs) {
  const Json& intensity = inputs.at("intensity");
  const Json& embodied = inputs.at("embodied");
  const Json& intervals = intensity.at("intervals");
  const auto row = [](const std::string& what, const std::string& value) {
    return absl::StrCat("<tr><th scope=\"row\">", what, "</th><td>", value,
                        "</td></tr>\n");
  };
  return absl::StrCat(
      "<table><caption>Inputs</caption>",
      row("issued", Show(inputs.at("issued"))),
      row("zone", Show(inputs.at("zone"))),
      row("intensity",
          absl::StrCat(
              Show(intensity.at("kind")), ", ", Show(intensity.at("unit")),
              ", ", Show(intervals.at(0).at(0)), " to ",
              Show(intervals.back().at(1)), ", &plusmn;",
              absl::StrFormat(
                  "%.0f%%", 100 * intensity.at("uncertainty").get<double>()))),
      row("its source", absl::StrCat(Show(intensity.at("source")), ", SHA-256 ",
                                     Show(intensity.at("file_sha256")))),
      row("embodied",
          absl::StrCat(
              Show(embodied.at("grams")), " gCO2e over ",
              Show(embodied.at("lifetime_hours")), " hours",
              embodied.at("source").empty() || embodied.at("source") == ""
                  ? ""
                  : ", ",
              Show(embodied.at("source")))),
      row("PUE", Show(inputs.at("pue"))),
      row("energy",
          absl::StrFormat(
              "of one meter &plusmn;%.0f%%, of the model &plusmn;%.0f%%",
              100 * inputs.at("energy").at("meter_uncertainty").get<double>(),
              100 * inputs.at("energy").at("model_uncertainty").get<double>())),
      "</table>\n");
}

}  // namespace

absl::StatusOr<CertificateHeadline> HeadlineOf(absl::string_view text) {
  OPTRAIL_ASSIGN_OR_RETURN(const Json json, ParseJson(text, "certificate"));
  try {
    CertificateHeadline headline;
    headline.text = SavingText(json);
    headline.made_up = json.value("made_up", false);
    headline.can_tell = !json.contains("saving") ||
                        json.at("saving").at("verdict") != kCannotTell;
    return headline;
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("certificate: ", error.what()));
  }
}

absl::StatusOr<std::string> CertificatePage(absl::string_view text) {
  OPTRAIL_ASSIGN_OR_RETURN(const Json json, ParseJson(text, "certificate"));
  try {
    std::string html = absl::StrCat(
        json.value("made_up", false)
            ? "<p><strong>Made-up data.</strong> The runs or the intensity of "
              "this certificate were not measured.</p>\n"
            : "",
        "<p>", EscapeHtml(SavingText(json)), " ", Show(json.at("method")),
        ".</p>\n",
        json.at("estimated").get<bool>()
            ? "<p><span class=\"estimated\">estimated</span> The energy of at "
              "least one side is a model's answer, not a reading.</p>\n"
            : "",
        Sides(json), Benchmarks(json), Inputs(json.at("inputs")));
    absl::StrAppend(&html, "<p>Digest: ", Show(json.at("digest")), ". ",
                    json.contains("signature")
                        ? absl::StrCat("Signed (Ed25519) by ",
                                       Show(json["signature"].at("public_key")))
                        : std::string("Not signed: who can change the history "
                                      "can also change this"),
                    ". Check: <code>optrail carbon verify</code> with its JSON "
                    "and the history.</p>\n");
    return PageText("Carbon certificate", html);
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("certificate: ", error.what()));
  }
}

}  // namespace optrail::carbon
