# Install rules. The third-party libraries go to lib/fornax.

include(GNUInstallDirs)
