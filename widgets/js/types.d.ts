// Types of what Python sends: recordings, trees, boards, graphs, and the messages about them. What
// each entry means is told at the head of the Python file that makes it.

// Every element of a view is an HTML or an SVG one: both have data attributes and a focus.
interface Element extends HTMLOrSVGElement {}

// Constants of WebGPU that lib.dom leaves out.
declare const GPUBufferUsage: Record<
  "MAP_READ" | "COPY_SRC" | "COPY_DST" | "UNIFORM" | "STORAGE" | "QUERY_RESOLVE",
  number
>;
declare const GPUMapMode: Record<"READ", number>;
declare const GPUShaderStage: Record<"COMPUTE", number>;

declare namespace Data {
  /** What a view is drawn with: anywidget's model in a notebook, an object like it in a page. */
  interface Model {
    get(name: string): any;
    set(name: string, value: unknown): void;
    save_changes(): void;
    /** Takes no message where nobody is there to answer: `send.length` is 0. */
    send(message: object): void;
    on(event: string, listener: (message: any) => void): void;
    off(event: string, listener: (message: any) => void): void;
    /** What makes other views of the kernel's; not on a page without one. */
    widget_manager?: Manager;
  }

  /** The part of Jupyter's manager of widgets that shows a view inside of another one. */
  interface Manager {
    get_model(id: string): Promise<object>;
    create_view(model: object): Promise<{ el: HTMLElement; remove(): void }>;
  }

  /** What a host calls `render` with. */
  interface Host {
    model: Model;
    el: HTMLElement;
  }

  interface View {
    render(host: Host): () => void;
    /** What a view has more than its traits when its kernel goes: see `kernel.js`. */
    left?(model: Model): Record<string, unknown>;
  }

  /** What may stand within an element. */
  type Child = Node | string | null | undefined;

  /** Attributes of an element, and listeners under "on" and the name of the event. */
  interface Attributes {
    onclick?: (event: MouseEvent) => void;
    onkeydown?: (event: KeyboardEvent) => void;
    oninput?: (event: Event) => void;
    onchange?: (event: Event) => void;
    [name: string]: string | number | boolean | null | undefined | ((event: any) => void);
  }

  type Side = "before" | "after";
  type Mark = "" | "new" | "changed" | "moved" | "removed";

  // -- recording.py, count_steps.py, compare.py

  interface LevelCounts {
    name: string;
    lookups: number;
    misses: number;
    bytes_in: number;
    bytes_out: number;
  }

  interface Counts {
    levels: LevelCounts[];
    reads: number;
    writes: number;
    bytes_read: number;
    bytes_written: number;
    flops: number;
    intensity: number;
    /** The share of the run that was counted, where it is not all of it. */
    part?: number;
    unseen?: number;
    message?: string;
    /** Lines that threads of parallel loops take from each other: see sharing.py. */
    sharing?: Sharing | null;
  }

  interface Sharing {
    threads: number;
    line: number;
    written: number;
    shared: number;
    moves: number;
    buffers: Record<string, { shared: number; moves: number }>;
  }

  interface Cost {
    time?: number;
    spread?: number | null;
    runs?: number;
    gflops?: number;
    peak_fraction?: number;
    equal?: boolean | null;
    max_error?: number | null;
    message?: string;
    counts?: Counts;
    inner?: InnerLoop;
    gpu?: GPUCounts;
    /** Whether the speed is not measured yet: another one stands in its place. */
    untimed?: boolean;
  }

  /** Counts of a GPU: see `mlc_lab/observe/gpu/steps.py`. */
  interface GPUCounts {
    name?: string;
    seconds?: number;
    limit?: string;
    rows?: [string, string][];
    message?: string;
  }

  /** The inner loop in machine code: see why.py. */
  interface InnerLoop {
    instructions?: number;
    vector?: number;
    width?: number;
    registers?: number;
    of?: number;
    spills?: number;
    reloads?: number;
    /** What lives in which vector register. */
    held?: { registers: string[]; what: string }[];
    /** The instructions, of a long loop the first ones. */
    text?: string[];
    /** Which of these spill a register or load it again. */
    on_stack?: number[];
    message?: string;
  }

  interface Refusal {
    rule?: string;
    message: string;
    keys?: number[];
    where?: string;
  }

  interface Step {
    op: string;
    /** In a roofline, in the place of its number. */
    name?: string;
    python: string;
    lead?: string[];
    before: number;
    after: number;
    error?: Refusal | null;
    origins?: [number, number[]][];
    why?: string[];
  }

  interface Machine {
    cpu?: string;
    cores?: number;
    peak_gflops?: number;
    caches?: CacheLevel[];
    bandwidth?: Record<string, number>;
  }

  /** What the text of programs is kept in: of a recording, and of a tree of attempts. */
  interface Texts {
    lines: [string, number[]][];
    parts?: Part[][];
    keys: [string, string][];
    programs: { lines: number[]; cost: Cost | null }[];
    /** For each program the slots of its lines as runs, see alignment.py. */
    slots?: number[][];
  }

  /** What stands in a line: see recording.py. */
  type LoopPart = ["loop", string, string, string, string];
  type Part =
    | LoopPart
    | ["iterator", string, string, string, string]
    | ["buffer", string, string[], string, string]
    | ["block" | "reads" | "writes" | "where" | "group", string]
    | ["aside"];

  interface Recording extends Texts {
    title: string;
    prelude: string;
    machine: Machine;
    flops: number | null;
    docs: Record<string, { meaning?: string; doc?: string }>;
    steps: Step[];
    code?: Code | { gzip: string };
  }

  interface Comparison {
    title: string;
    recording: Recording;
    split: number;
    names?: [string, string];
    preludes?: [string, string];
  }

  interface Code {
    lines: [string, number[], number][];
    programs: Record<string, CodeOfProgram<number>>;
  }

  /** The code of a program; its lines are numbers in what Python sends. */
  interface CodeOfProgram<Line> {
    stages: { name: string; changed: boolean; lines: Line[] }[];
    llvm: Line[];
    assembly: Line[];
    mix?: Record<string, number>;
    machine?: string;
    error?: string;
    /** Source of kernels for GPUs, by the kind of target. */
    sources?: Record<string, { lines: Line[]; error?: string }>;
  }

  /** What is shown of a program's code: a kind of `CodeOfProgram`, or one of its `sources`. */
  type CodeKind = "stages" | "llvm" | "assembly" | "cuda" | "opencl" | "webgpu" | "metal" | "nvptx";

  interface CodeLine {
    text: string;
    from: number[];
    width: number;
    html?: string;
  }

  /** `again`: there is none, and asking again may help. */
  type CodeEntry = Partial<CodeOfProgram<CodeLine>> & { again?: boolean };

  /** A line of a program as the views have it: its text without the indentation. */
  interface Line {
    text: string;
    indent: number;
    keys: number[];
    parts: Part[];
  }

  /** A row of two aligned programs: numbers of lines, -1 for none. */
  interface Row {
    left: number;
    right: number;
    leftMark: Mark;
    rightMark: Mark;
  }

  interface Fact {
    name: string;
    value: string;
    kind?: string;
    title?: string;
  }

  /** What belongs together in the programs before and after. */
  interface Related {
    before: Set<number>;
    after: Set<number>;
  }

  /** What is kept of a reader's choice of a line. */
  interface Selection {
    key?: number;
    kind?: string;
    name?: string;
    side?: string;
    step?: number;
    line?: number;
    text?: string;
    keys?: number[];
  }

  /** The answers to the questions of a step, or what was guessed. */
  interface Answer {
    legal: string | null;
    speed: string | null;
  }

  /** A drawing of boxes from top to bottom, of which those near the eye are in the page. */
  interface Drawing {
    width: number;
    height: number;
    label: string;
    items: { y: number; h: number; html: string; mark?: Mark }[];
  }

  // -- live.py

  /** The number of a choice, on or off, or an order of loops. */
  type KnobValue = number | boolean | number[];

  interface Knob {
    kind: "number" | "switch" | "order" | "form";
    name: string;
    text: string;
    labels: string[];
    start: KnobValue;
    /** The block that it is about. */
    where?: string;
    /** The forms of the program (values of the first knob) that have it; empty: all. */
    forms?: number[];
    /** The switches without which it has no effect: [form, or -1 for any one; number of the knob]. */
    needs?: [number, number][];
  }

  /** A box of a loop nest: how deep it lies, its kind, its text, what kind of loop it is. */
  type NestRow = [number, "loop" | "block" | "group" | "text", string, string];

  interface LivePoint {
    key: string;
    state: KnobValue[];
    lines: string[];
    nest?: NestRow[];
    python: string;
    error: { call: string; rule: string; message: string } | null;
    cost: Cost;
    /** On a page: the first accesses, if they were looked at. */
    watched?: Watched | null;
  }

  interface Watched {
    key?: string;
    trace?: Accesses;
    results: CacheResult[];
    message?: string;
  }

  // -- typed.py

  interface TypedPoint extends LivePoint {
    text: string;
    skeleton: string;
    knobs: Knob[];
    places: [number, number, number][][];
  }

  /** What is wrong with a text, at a line (from 1) of it. */
  interface TextError {
    line: number;
    column: number;
    end: number;
    message: string;
    hint: string;
    call: string;
    rule: string;
  }

  // -- workbench.py, workbench_palette.py

  interface Attempt {
    id: number;
    parent: number | null;
    op: string;
    python: string;
    lead: string[];
    program: number;
    error?: Refusal | null;
    /** Of the last attempt of several that were made at once: the one at which that began. */
    began?: number;
  }

  interface Tree extends Texts {
    title: string;
    prelude: string;
    imports: string;
    at: number;
    nodes: Attempt[];
    left?: Record<string, Left>;
  }

  /** What a program takes of a GPU's limits, [used, most]: see mlc_lab/observe/gpu/left.py. */
  interface Left {
    threads?: [number, number];
    shared?: [number, number];
    registers?: [number, number];
    occupancy?: { warps: number; most: number; limit: string };
    message: string;
  }

  interface Choice {
    value: unknown;
    label: string;
    legal?: boolean;
    reason?: string;
    /** Why it is suggested. */
    note?: string;
  }

  /** A parameter of a primitive; which of the entries there are depends on its kind. */
  interface Parameter {
    name: string;
    kind: string;
    default: any;
    advanced?: boolean;
    choices: Choice[];
    items: { value: unknown; label: string }[];
    loop: string;
    extent: number | null;
    divisors?: number[] | null;
    labels?: string[];
    suggestions?: string[];
  }

  interface PaletteEntry {
    op: string;
    group: string;
    meaning: string;
    legal: boolean;
    parameters: Parameter[];
    rule: string;
    reason: string;
  }

  interface Listing {
    kind: string;
    name: string;
    node: number;
    key: number;
    entries: PaletteEntry[];
  }

  /** What the kernel answers to a request of the workbench. */
  interface Answered {
    answer?: number;
    ok?: boolean;
    error?: string;
    rule?: string;
    reason?: string;
    legal?: boolean;
    line?: number;
    node?: number;
    preview?: [string, string][];
  }

  // -- graph.py, passes.py, machine_run.py

  interface GraphNode {
    id: string;
    kind: string;
    label: string;
    name: string;
    type: string;
    bytes: number | null;
    constants: { type: string; bytes: number | null }[];
    attrs: Record<string, string>;
    pure: boolean;
    region: number | null;
    group: string | null;
    moved: number | null;
    flops: number | null;
    text: number | null;
    script: string;
  }

  interface Layout {
    width: number;
    height: number;
    boxes: [string, number, number, number, number][];
    routes: [number, [number, number][]][];
  }

  interface Graph {
    title: string;
    nodes: GraphNode[];
    edges: { from: string; to: string; label: string; bytes: number | null }[];
    regions: number;
    texts: string[];
    layouts: { closed: Layout; open: Layout };
  }

  interface Passes {
    title: string;
    recording: Recording;
    seconds: number[];
    within: string[][];
    graphs: (Graph | null)[];
    moved: (number | null)[];
  }

  interface RunStep {
    code: number;
    at: number;
    depth: number;
    name: string;
    kernel: boolean;
    reads: string[];
    writes: string;
    seconds: number;
    set: Record<string, string>;
    unset: string[];
    wrote: Record<string, number | null>;
    node: number | null;
  }

  /** What a tensor holds: see values.py. */
  interface Summary {
    shape: number[];
    dtype: string;
    min: number | null;
    max: number | null;
    mean: number | null;
    nan: number;
    inf: number;
    zeros: number;
    numbers: (number | string)[] | null;
    picture: Picture | null;
  }

  interface Picture {
    rows: number;
    columns: number;
    low: number | string;
    high: number | string;
    cells: string;
  }

  interface RunNode {
    label: string;
    name: string;
    type: string;
    takes: { name: string; type: string; node: number | null }[];
  }

  interface KernelEntry {
    recording?: Recording;
    note?: string;
    error?: string;
  }

  interface Span {
    from: number;
    to: number;
    size: number;
  }

  interface Run {
    title: string;
    code: { function: string; lines: string[] }[];
    steps: RunStep[];
    given: Record<string, number | null>;
    values: Summary[];
    nodes: RunNode[];
    storages: (Span & { tensors: (Span & { register: string; offset: number })[] })[];
    live: number[];
    unshared: number[];
    peak: number;
  }

  // -- access.py, cache.py

  interface CacheLevel {
    name: string;
    size: number;
    line: number;
    ways: number;
    replacement: string;
  }

  interface Buffer {
    name: string;
    dtype: string;
    itemsize: number;
    shape: number[];
    base: number;
    kind: string;
  }

  interface Site {
    buffer: number;
    write: boolean;
    bytes: number;
    loops: string[];
    line: number | null;
    text: string;
  }

  interface Accesses {
    title: string;
    lines: string[];
    buffers: Buffer[];
    sites: Site[];
    site: number[];
    element: number[];
    thread: number[];
    moments: number[];
    values: number[];
    total: number;
    notes: string[];
  }

  interface CacheResult {
    name: string;
    levels: CacheLevel[];
    found: string;
    reuse: number[] | null;
    gone: number[];
    counts: LevelCounts[];
  }

  // -- board.py

  interface Session {
    key: string;
    label: string;
    task: string;
    target: string;
    seed: number | null;
    state: string;
    trials_wanted: number;
    flop: number;
    peak_s: number | null;
    numpy_s: number | null;
    /** Whether its times are those of a model. */
    modelled?: boolean;
    /** Seconds of other schedules, by name. */
    baselines?: Record<string, number>;
  }

  interface Trial {
    key: string;
    session: string;
    trial: number;
    /** Its number in its search, from 0: given by the view. */
    index: number;
    round: number;
    generation: number;
    parent: string | null;
    mutation: string;
    strategy: string;
    status: string;
    reason: string;
    time: number | null;
    low: number;
    high: number;
    predicted: number | null;
    error: number | null;
    at: Record<string, number>;
    decisions: Record<string, number | number[]>;
    /** Which of the board's words are about these decisions. */
    words?: number;
    trace: number[];
  }

  /** What a decision is about; of which choices it is the number of one. */
  interface Words {
    label: string;
    choices: string[] | null;
  }

  interface Board {
    title: string;
    sessions: Session[];
    trials: Trial[];
    axes: string[];
    axis_labels?: Record<string, string>;
    words?: Record<string, Words>[];
    rounds: { session: string; round: number; trials: number; correlation: number | null }[];
    lines: string[];
  }

  // -- card.py

  interface TaskField {
    name: string;
    question: string;
    kind: "number" | "choice" | "order" | "several" | "marks";
    choices: string[];
    /** the choices in the reader's language */
    said?: string[];
    picture?: MarkPicture;
    /** Whether there is a view besides, in which a place can be chosen too. */
    view?: string;
  }

  /** What is marked in: see mlc_lab/exercises/pictures.py; the places are the field's choices. */
  type MarkPicture = Cells | Lines | Calls;

  interface Cells {
    kind: "cells";
    grids: { name: string; shape: number[] }[];
  }

  interface Lines {
    kind: "lines";
    lines: string[];
    word: string;
  }

  interface Calls {
    kind: "calls";
    width: number;
    height: number;
    boxes: { mark: string; at: [number, number, number, number]; words: string[] }[];
    routes: [number, number][][];
  }

  interface Task {
    id: string;
    title: string;
    level: number;
    minutes: number;
    statement: string;
    kind: "schedule" | "program" | "prediction";
    seed: string;
    program: string;
    fields: TaskField[];
    rows: { title: string; of: number }[];
    before: { points: number; of: number } | null;
    /** whether the answer is to an earlier version of the exercise */
    outdated?: boolean;
  }

  interface MarksRow {
    kind: string;
    title: string;
    points: number;
    of: number;
    passed: boolean;
    says: string;
    place: {
      text?: string;
      element?: string;
      buffer?: string;
      binding?: string;
      field?: string;
      wrong?: string;
      missing?: string;
    };
  }

  /** The marks of an answer; without rows nothing was checked yet. */
  interface Marks {
    rows?: MarksRow[];
    points: number;
    of: number;
    error: { message: string; hint: string; line: number } | null;
    n: number;
  }

  // -- page_card.py

  /** What a page of the site has to answer for a card. */
  interface CardPage {
    version: string;
    hints: string[];
    solution: string;
    error: { message: string; hint: string; line: number };
    /** Where a page can check: the rows, and what is said of any value. */
    rows?: (PageTruth & { kind: string; field: string; title: string; of: number })[];
    words: Record<string, string>;
  }

  /** What is right in a row, and what is told of what is not. */
  interface PageTruth {
    equals: any;
    within?: number;
    why: string;
    says?: [unknown, string][];
    about?: Record<string, string>;
  }

  /** What a check finds: see `mlc_lab/exercises/result.py`. */
  interface PageFound {
    passed: boolean;
    says: string;
    /** Of the points: a number of them, and of how many. */
    part?: [number, number];
    place?: MarksRow["place"];
  }

  // -- class_report.py

  interface ClassExercise {
    id: string;
    title: string;
    kind: string;
    of: number;
    rows: { title: string; of: number }[];
  }

  /** An answer: `text` and `error` are texts, -1 for none; a row is [points, passed, says, place]. */
  interface ClassAnswer {
    points: number;
    seed: string;
    group: number;
    text: number;
    error: number;
    rows: [number, number, number, number][];
  }

  /** Students who answered wrong in the same way. */
  interface ClassGroup {
    students: number[];
    first: number;
    points: number;
    text: number;
    program: number;
    right: number;
    reference: number;
    failed: number[];
    says: number;
  }

  interface ClassReport {
    title: string;
    exercises: ClassExercise[];
    students: { name: string; note: string }[];
    texts: string[];
    answers: (ClassAnswer | null)[][];
    groups: ClassGroup[][];
    alike: { students: [number, number]; exercises: string[]; same: string[] }[];
    unread: number;
  }

  // -- room.py, questions.py

  interface RoomQuestion {
    key: string;
    recording: number;
    step: number;
    title: string;
    call: string;
    meaning: string;
    program: string;
    asks: { name: string; text: string; choices: [string, string][] }[];
  }

  /** By question and answer: how many said so. */
  type RoomCounts = Record<string, Record<string, number>>;

  /** What is so, by the name of what was asked; null where nothing is known. */
  interface RoomTruth {
    says: string[];
    [name: string]: any;
  }

  interface RoomState {
    class: string;
    question: RoomQuestion;
    number: number;
    of: number;
    revealed: boolean;
    truth: RoomTruth | null;
  }

  interface RoomStudent extends RoomState {
    mine: Record<string, string> | null;
    counts: RoomCounts | null;
    score: [number, number];
  }

  interface RoomTeacher extends RoomState {
    counts: RoomCounts;
    answered: number;
    joined: number;
    pin: string;
    door: boolean;
    wrongPins: number;
    told: number[];
  }

  // -- gpu/browser.py

  interface ExpectedResult {
    scale: number;
    tolerance: number;
    every: number;
    values: (number | string)[];
    group: number;
    sums: (number | string)[];
  }

  interface BrowserArray {
    name: string;
    dtype: string;
    shape: number[];
    seed?: number;
    data?: string;
    expected: ExpectedResult | null;
  }

  interface BrowserKernel {
    name: string;
    text: string;
    read_only: boolean[];
    block: number[];
    shared: number;
  }

  interface BrowserVariant {
    name: string;
    picked: Record<string, number | string>;
    error: string;
    buffers: number[];
    kernels: BrowserKernel[];
    launches: { kernel: number; grid: number[]; buffers: number[]; scalars: string }[];
    counts: [string, string][];
    seconds: number | null;
    note: string;
  }

  interface BrowserKernels {
    title: string;
    flop: number | null;
    gpu: string;
    arrays: BrowserArray[];
    choices: Record<string, (number | string)[]>;
    variants: BrowserVariant[];
  }

  /** What a variant did, as a page keeps it. */
  interface BrowserRun {
    variant: number;
    device: string;
    seconds: number;
    clock: string;
    fault: string;
    error: number;
    failure: string;
  }

  /** Memory that threads use. */
  interface ThreadBuffer {
    name: string;
    scope: "global" | "shared";
    dtype: string;
    itemsize: number;
    size: number;
    base: number;
  }

  /** A load or a store of a kernel. */
  interface ThreadSite {
    buffer: number;
    text: string;
    statement: string;
    write: boolean;
    nbytes: number;
  }

  /** What the threads of a block do: see `mlc_lab/observe/gpu/threads.py`. */
  interface Threads {
    kernel: string;
    gpu: string;
    text: string;
    grid: number[];
    block: number[];
    chosen: number;
    warp: number;
    buffers: ThreadBuffer[];
    sites: ThreadSite[];
    lanes: (number | null)[][];
    /** The site (-1: a barrier), the lanes, their shift, what each warp asks for. */
    events: [number, number, number, number[]][];
    total: number;
    occupancy: {
      blocks: number;
      warps: number;
      most_warps: number;
      limit: string;
      each: Record<string, number>;
      now: Record<string, number>;
      lifted: Record<string, [number, number, number, string][]>;
    };
  }
}
