// What the widgets use of d3, and nothing else. ../bundle.py makes one script of it.
export { format } from "d3-format";
export { scaleBand, scaleLinear, scaleLog } from "d3-scale";
export { area, curveMonotoneX, line } from "d3-shape";
