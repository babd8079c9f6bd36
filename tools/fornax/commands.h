// The subcommands of the command line tool that only print.
#pragma once

#include <string>

namespace fornax::tool {

void print_info();
// All operators, or one; 1 if there is none of that name.
int print_ops(const std::string& name, bool markdown);
// Names, sizes, dtypes and statistics of a file's tensors. Throws Error(kIo).
void inspect_file(const std::string& path);

}  // namespace fornax::tool
