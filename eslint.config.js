// ESLint for the scripts of the views, which run in a browser, and for their tools and tests.

import js from "@eslint/js";
import globals from "globals";

export default [
  {
    ignores: [
      "**/*",
      "!widgets/",
      "!widgets/js/**",
      "!widgets/build.mjs",
      "!tests/",
      "!tests/js/**",
      "**/*.d.ts",
    ],
  },
  js.configs.recommended,
  {
    rules: {
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-implicit-coercion": ["error", { boolean: false }],
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
    },
  },
  { files: ["widgets/js/*.js"], languageOptions: { globals: globals.browser } },
  { files: ["widgets/build.mjs", "tests/js/*.js"], languageOptions: { globals: globals.node } },
];
