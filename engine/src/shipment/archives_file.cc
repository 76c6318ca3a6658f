#include "shipment/archives_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "shipment/archive_command.h"

namespace thalweg::shipment {

namespace {

using nlohmann::json;

constexpr size_t kBytesMax = size_t{1} << 20;

base::Result<json> read(const std::filesystem::path& file) {
  std::error_code missing;
  if (!std::filesystem::exists(file, missing)) return json::object();
  THALWEG_ASSIGN(const std::string text, base::read_file(file, kBytesMax));
  json document = json::parse(text, nullptr, false);
  if (document.is_object()) return document;
  return archive_failed(fmt::format("{} is no JSON object of archives by their names.", file.string()));
}

std::vector<std::string> names_in(const json& document) {
  std::vector<std::string> names;
  for (const auto& [name, place] : document.items()) names.push_back(name);
  return names;
}

base::Result<ArchivePlace> place_in(const json& place, const std::string& name, const std::filesystem::path& file) {
  const auto text = [&](const char* member) {
    const auto found = place.is_object() ? place.find(member) : place.end();
    return found != place.end() && found->is_string() ? found->get<std::string>() : std::string{};
  };
  const ArchivePlace found{.directory = text("directory"), .command = text("command"), .name = name};
  if (!place.is_object() || place.size() != 1 || found.directory.empty() == found.command.empty()) {
    return archive_failed(
        fmt::format("The archive {} in {} has to have either a directory or a command.", name, file.string()));
  }
  if (found.command.empty() && !found.directory.is_absolute()) {
    return archive_failed(
        fmt::format("The directory of the archive {} in {} has to begin with /.", name, file.string()));
  }
  if (!found.command.empty()) THALWEG_TRY(expand({.text = found.command, .name = {}, .path = {}}));
  return found;
}

}  // namespace

base::Result<ArchivePlace> find_archive(const std::filesystem::path& file, const std::string& name) {
  THALWEG_ASSIGN(const json document, read(file));
  const auto place = document.find(name);
  if (place != document.end()) return place_in(*place, name, file);
  const auto names = names_in(document);
  return archive_failed(fmt::format("The engine has no archive {}. {} {}.", name, file.string(),
                                    names.empty() ? "names none" : fmt::format("names {}", fmt::join(names, ", "))));
}

std::vector<std::string> archive_names(const std::filesystem::path& file) {
  std::vector<std::string> names;
  const auto document = read(file);
  if (!document) return names;
  for (const auto& [name, place] : document->items()) {
    if (place_in(place, name, file)) names.push_back(name);
  }
  return names;
}

}  // namespace thalweg::shipment
