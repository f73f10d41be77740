/** The simulation over more worlds. */
import "./simulation.test.ts";
