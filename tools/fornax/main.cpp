// The command line tool.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "fornax/base/error.h"
#include "tools/fornax/commands.h"
#include "tools/fornax/replay.h"

int main(int argc, char** argv) {
  CLI::App app("fornax: look at the library, its operators and files");
  app.require_subcommand(1);
  int status = 0;

  app.add_subcommand("info", "version, CPU features and kernel set, libraries, threads")
      ->callback([&] { fornax::tool::print_info(); });

  std::string op_name;
  bool markdown = false;
  CLI::App* ops = app.add_subcommand("ops", "each operator's schema, text, rules and kernels");
  ops->add_option("name", op_name, "one operator");
  ops->add_flag("--markdown", markdown, "as the reference page");
  ops->callback([&] { status = fornax::tool::print_ops(op_name, markdown); });

  std::string file;
  CLI::App* inspect = app.add_subcommand("inspect", "tensors of a safetensors, npy or npz file");
  inspect->add_option("file", file)->required();
  inspect->callback([&] { fornax::tool::inspect_file(file); });

  fornax::replay::ReplayOptions replay;
  CLI::App* r = app.add_subcommand("replay", "recorded operator calls against the library");
  r->add_option("files", replay.files, "records (.jsonl or .jsonl.gz)")->required();
  r->add_option("--exceptions", replay.exceptions, "file of cases to skip, with the reason");
  r->add_flag("-v,--verbose", replay.verbose, "the first difference of each failure");
  r->callback([&] { status = fornax::replay::run_replay(replay); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "fornax: %s\n", e.what());
    return 1;
  }
  return status;
}
